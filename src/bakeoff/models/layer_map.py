"""The map from a model's tensors to those of a model with unshared layers, with more layers, or both.

Sharing is an index map (models/stack.py), so that undoing it and growing are edits of that map: layer l of the new
stack starts from one layer of the old stack, and each part of layer l from the part that the old layer applied.
"""

from collections.abc import Sequence
from typing import Any, Literal

from bakeoff.errors import UserError
from bakeoff.models.model import Model, ModelConfig
from bakeoff.models.stack import Stack, StackConfig

GrowBy = Literal["repeat", "interleave"]


def source_layers(old: int, new: int, by: GrowBy) -> list[int]:
    """For each of `new` layers, the number of the old layer from which it starts, among `old` layers.

    repeat: 0 1 2 0 1 2, the whole stack again; interleave: 0 0 1 1 2 2, each layer again.
    """
    return [layer % old if by == "repeat" else layer * old // new for layer in range(new)]


def unshared(model: ModelConfig) -> dict[str, Any]:
    """Changes of a recipe that give each layer parts of its own."""
    changes: dict[str, Any] = {}
    for side in model.stacks():
        changes |= {f"model.{side}.share": "none", f"model.{side}.groups": 1}
    return changes


def grown(model: ModelConfig, layers: int, by: GrowBy) -> dict[str, Any]:
    """Changes of a recipe that give its stacks `layers` layers; a list of blocks grows as the layers do.

    Raises:
        UserError: a stack has more layers than `layers`.
    """
    changes: dict[str, Any] = {}
    for side, stack in model.stacks().items():
        if stack.layers == layers:
            continue
        if stack.layers > layers:
            raise UserError(f"--grow {layers}: the {side} has {stack.layers} layers already, and they only become more")
        changes[f"model.{side}.layers"] = layers
        if isinstance(stack.block, list):
            changes[f"model.{side}.block"] = _grown_blocks(stack, layers, by)
    return changes


def _grown_blocks(stack: StackConfig, layers: int, by: GrowBy) -> list[dict[str, Any]]:
    """The blocks of a deeper stack, each from the layer it starts from; equal neighbours are joined by `repeat`."""
    old = stack.layer_blocks()
    blocks: list[dict[str, Any]] = []
    for layer in source_layers(stack.layers, layers, by):
        block = {**old[layer].model_dump(mode="json"), "repeat": 1, "at": None}
        if blocks and {**blocks[-1], "repeat": 1} == block:
            blocks[-1]["repeat"] += 1
        else:
            blocks.append(block)
    return blocks


def model_sources(old: Model, new: Model, by: GrowBy | None = None) -> dict[str, str]:
    """For each tensor of a new model, by name, the name of the old model's tensor from which it starts.

    Args:
        old: the model that gives the tensors; names and shapes are enough, so that it may be on the meta device.
        new: a model of the same kind.
        by: the way in which a deeper stack starts from a shallower one; None: the stacks must be equally deep.

    Raises:
        UserError: the stacks do not match.
    """
    stacks = new.stacks()
    names = {name: name for name in new.state_dict() if name.partition(".")[0] not in stacks}
    for side, stack in stacks.items():
        old_stack = old.stacks().get(side)
        if old_stack is None:
            raise UserError(f"this model has a {side}, but the run's has none")
        names |= {
            f"{side}.{name}": f"{side}.{source}" for name, source in stack_sources(old_stack, stack, side, by).items()
        }
    return names


def stack_sources(old: Stack, new: Stack, side: str, by: GrowBy | None = None) -> dict[str, str]:
    """For each tensor of a new stack, by name, the name of the old stack's tensor from which it starts.

    Attention to a source is left out where the old stack has none.

    Raises:
        UserError: the numbers of layers or their parts do not match, or a shared part would start from several.
    """
    depth, target = len(old.index_map), len(new.index_map)
    if depth != target and (by is None or depth > target):
        grow = f"; --grow {target} makes them more" if depth < target else ""
        raise UserError(f"the {side} has {target} layers, but the run's has {depth}{grow}")
    if depth != target and new.weighting is not None:
        raise UserError(
            f"layer_weights: each layer of the {side} mixes the outputs of all layers before it, which {target} layers "
            f"have otherwise than {depth}; set it to false in the deeper model's recipe"
        )
    mixed = old.value_residual is not None
    if mixed != (new.value_residual is not None):
        one, other = ("the run's", "this model's") if mixed else ("this model's", "the run's")
        raise UserError(
            f"mixer.value_residual: {one} {side} mixes values with those of its first layer, and {other} does not; set "
            f"it to {str(mixed).lower()} in the recipe"
        )
    layers = source_layers(depth, target, by or "repeat")
    parts = _part_sources(old, new, layers)
    names = {}
    for name in new.state_dict():
        if old.value_residual is not None and name.startswith("value_residual."):
            *path, layer = name.split(".")
            names[name] = ".".join([*path, str(old.value_residual.share_from(layers[int(layer)]))])
            continue
        if not name.startswith("parts."):
            names[name] = name
            continue
        _, part, index, rest = name.split(".", 3)
        if (part, int(index)) in parts:
            names[name] = f"parts.{part}.{parts[part, int(index)]}.{rest}"
    return names


def _part_sources(old: Stack, new: Stack, layers: Sequence[int]) -> dict[tuple[str, int], int]:
    """For each part of the new stack, by kind and index, the index of the old part from which it starts."""
    sources: dict[tuple[str, int], int] = {}
    first: dict[tuple[str, int], int] = {}
    for layer, source in enumerate(layers):
        before = dict(old.index_map[source])
        for key in new.index_map[layer]:
            if key[0] not in before:
                if key[0] == "cross":
                    continue
                raise UserError(f"layer {layer + 1} has a part '{key[0]}', which the run's layers do not have")
            index = before[key[0]]
            if sources.setdefault(key, index) != index:
                raise UserError(
                    f"layers {first[key] + 1} and {layer + 1} share their {key[0]}, but would start from layers "
                    f"{layers[first[key]] + 1} and {source + 1} of the run, where they differ; share less, use other "
                    "groups, or --grow-by interleave"
                )
            first.setdefault(key, layer)
    return sources
