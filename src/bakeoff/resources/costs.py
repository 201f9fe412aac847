"""The costs of a recipe, counted without memory for its weights."""

import math

from bakeoff.config import Config
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.stack import Stack
from bakeoff.recipe import Recipe


class StackSize(Config):
    """The size of a stack; shared parts are applied more often than they exist."""

    layers: int
    """Number of layers."""
    parts: int
    """Number of distinct parts, such as a mixer or a feed-forward network with its norm."""
    applications: int
    """Number of applications of parts to a text."""


class Costs(Config):
    """The sizes of a recipe's model, and the operations of its pre-training."""

    vocabulary: int
    """The assumed size of the vocabulary."""
    parameters: int
    """Number of parameters including the pre-training heads; tied and shared ones count once."""
    parts: dict[str, int]
    """Number of parameters of each part: embedding, encoder, decoder, generator and the head of each objective."""
    stacks: dict[str, StackSize]
    """Sizes of the stacks by name."""
    flops_per_token: int
    """Floating-point operations for one token in training, forward and backward."""
    receptive_field: dict[str, int | None]
    """Number of tokens, including its own, that an output of each stack can depend on; None: the whole row. A decoder's
    view of the encoder's output does not count."""


def costs_of(recipe: Recipe, vocabulary: int) -> Costs:
    """Count the parameters and operations of a recipe for a vocabulary of `vocabulary` tokens."""
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
