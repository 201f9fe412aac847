"""What a recipe costs, counted without memory for its weights."""

import math

from bakeoff.config import Config
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.stack import Stack
from bakeoff.recipe import Recipe


class StackSize(Config):
    """How a stack is made up; with shared parts it has fewer than it applies."""

    layers: int
    """Number of layers."""
    parts: int
    """Number of distinct parts, such as a mixer or a feed-forward network with its norm."""
    applications: int
    """How many times one of them is applied to a text."""


class Costs(Config):
    """The size and price of a pre-training."""

    vocabulary: int
    """Size of the vocabulary that is assumed."""
    parameters: int
    """Number of parameters with the pre-training heads, tied and shared ones once."""
    parts: dict[str, int]
    """Parameters of the embedding, the encoder, the decoder, a generator and each objective's head."""
    stacks: dict[str, StackSize]
    """Layers and parts of encoder and decoder."""
    flops_per_token: int
    """Floating-point operations of one token in training, forward and backward."""
    receptive_field: dict[str, int | None]
    """Tokens on both sides and its own that an output of the encoder or the decoder can depend on; None for all of the
    row. What a decoder sees of its encoder's output, which is all of it, does not count."""


def costs_of(recipe: Recipe, vocabulary: int) -> Costs:
    """Count a recipe's parameters and operations for a vocabulary of that size."""
    module = build_on_meta(recipe, vocabulary)
    parts = {"embedding": module.model.embedding, **module.model.stacks()}
    if module.model.target_embedding is not None:
        parts["target embedding"] = module.model.target_embedding
    if module.generator is not None:
        parts["generator"] = module.generator
    parts |= {f"{name} head": head for name, head in module.heads.items()}
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items()}
    if module.model.query is not None:
        counts["embedding"] += module.model.query.numel()
    return Costs(
        vocabulary=vocabulary,
        parameters=module.parameter_count(),
        parts=counts,
        stacks={name: _size(stack) for name, stack in module.model.stacks().items()},
        flops_per_token=module.flops_per_token(),
        receptive_field={name: _receptive_field(stack) for name, stack in module.model.stacks().items()},
    )


def _size(stack: Stack) -> StackSize:
    return StackSize(
        layers=len(stack.layers),
        parts=sum(len(stack.parts_named(name)) for name in stack.parts),
        applications=sum(len(layer) for layer in stack.layers),
    )


def _receptive_field(stack: Stack) -> int | None:
    reach = sum(stack.reach())
    return None if math.isinf(reach) else round(reach) + 1
