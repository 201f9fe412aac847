"""What a recipe costs, counted without memory for its weights."""

import math

from bakeoff.config import Config
from bakeoff.recipe import Recipe
from bakeoff.training.pretraining_model import build_on_meta

BYTES_PER_NUMBER = 4
"""Weights, gradients and the optimizer's moments are float32."""


class Costs(Config):
    """The size and price of a pre-training."""

    vocabulary: int
    """Size of the vocabulary that is assumed."""
    parameters: int
    """Number of parameters with the pre-training heads, tied and shared ones once."""
    parts: dict[str, int]
    """Parameters of the embedding, the encoder, the decoder and each objective's head."""
    flops_per_token: int
    """Floating-point operations of one token in training, forward and backward."""
    receptive_field: int | None
    """Tokens on both sides and its own that an output of the last layer can depend on; None for all of the row."""
    state_bytes: int
    """Memory of weights, gradients and optimizer."""


def costs_of(recipe: Recipe, vocabulary: int) -> Costs:
    """Count a recipe's parameters and operations for a vocabulary of that size."""
    module = build_on_meta(recipe, vocabulary)
    parts = {"embedding": module.model.embedding, **module.model.stacks()}
    if module.model.target_embedding is not None:
        parts["target embedding"] = module.model.target_embedding
    parts |= {f"{name} head": head for name, head in module.heads.items()}
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    if module.model.query is not None:
        counts["embedding"] += module.model.query.numel()
    parameters = module.parameter_count()
    reach = module.model.reach()
    return Costs(
        vocabulary=vocabulary,
        parameters=parameters,
        parts=counts,
        flops_per_token=module.flops_per_token(),
        receptive_field=None if math.isinf(sum(reach)) else round(sum(reach)) + 1,
        state_bytes=parameters * (2 + recipe.training.optimizer.moments) * BYTES_PER_NUMBER,
    )
