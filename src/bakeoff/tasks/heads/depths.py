"""Depths of the tensors of a head and its model, from the embedding up; freezing, rates and fresh weights by depth."""

from collections import defaultdict

import torch
from torch import nn

from bakeoff.errors import UserError
from bakeoff.models.mixers.relative_attention import RelativeAttention
from bakeoff.models.model import ModelConfig
from bakeoff.models.stack import Stack
from bakeoff.tasks.finetune_config import FinetuneConfig, LayerDecayRule
from bakeoff.tasks.heads.heads import HeadedModel


def depths(head: HeadedModel) -> tuple[dict[str, int], int]:
    """The depth of each parameter, and the number L of layers.

    0 is the embedding, 1 to L are the layers (an encoder's below its decoder's), and L + 1 is the head. A part that
    several layers share has the depth of the topmost of them; a part that a stack has for all of its layers, such as a
    final norm, has the depth of its topmost layer.
    """
    model = head.model
    below, depth_of = 0, dict[str, int]()
    stacks = model.stacks()
    for side, stack in stacks.items():
        # The decoder that reads backwards stands beside the other one.
        first = below if side != "backward_decoder" else below - len(stack.index_map)
        depth_of |= {f"model.{side}.{name}": first + layer for name, layer in _of_stack(stack).items()}
        below = first + len(stack.index_map)
    for name, _ in head.named_parameters():
        if name not in depth_of:
            depth_of[name] = 0 if name.startswith("model.") else below + 1
    return depth_of, below


def _of_stack(stack: Stack) -> dict[str, int]:
    """The layer, from 1, of each parameter of a stack."""
    layers: dict[tuple[str, int], int] = {}
    for layer, applied in enumerate(stack.index_map, 1):
        for part in applied:
            layers[part] = layer
    top, depth_of = len(stack.index_map), {}
    for name, _ in stack.named_parameters():
        owner = name.split(".")
        depth_of[name] = layers[owner[1], int(owner[2])] if owner[0] == "parts" else top
    return depth_of


def require_layers(model: ModelConfig, config: FinetuneConfig) -> None:
    """Refuse to freeze or reinitialise more layers than a model has, or the same layer in both ways.

    Raises:
        UserError: the model has fewer layers, or a layer would be frozen with fresh weights.
    """
    layers = sum(stack.layers for stack in model.stacks().values())
    for name in ("freeze", "reinitialise_last"):
        value = getattr(config, name)
        if isinstance(value, int) and value > layers:
            raise UserError(f"{name}: {value} layers, and the model has {layers}")
    frozen = layers if config.freeze == "model" else config.freeze
    if config.reinitialise_last and frozen is not None and frozen > layers - config.reinitialise_last:
        raise UserError("reinitialise_last: some of these layers are frozen, and would stay random; freeze fewer")


def freeze(head: HeadedModel, config: FinetuneConfig) -> None:
    """Keep the embedding and the lowest layers, or the whole model, from being trained."""
    if config.freeze is None:
        return
    depth_of, layers = depths(head)
    highest = layers if config.freeze == "model" else config.freeze
    for name, parameter in head.named_parameters():
        parameter.requires_grad_(depth_of[name] > highest)


def powers(head: HeadedModel, rule: LayerDecayRule) -> dict[str, int]:
    """The power of the decay for each parameter, see `FinetuneConfig.layer_decay_rule`."""
    depth_of, layers = depths(head)
    if rule == "ulmfit":
        return {name: layers + 1 - depth for name, depth in depth_of.items()}
    if rule == "electra":
        return {name: layers + 2 - depth if depth <= layers else 0 for name, depth in depth_of.items()}
    # XLNet's code keeps the biases of the scores, and the vectors of segments, of all layers outside of them.
    outside = {
        f"{name}.{parameter}"
        for name, part in head.named_modules()
        if isinstance(part, RelativeAttention)
        for parameter, _ in part.named_parameters(recurse=False)
    }
    return {
        name: layers - depth if 0 < depth <= layers and name not in outside else 0 for name, depth in depth_of.items()
    }


def with_rates(
    optimizer: torch.optim.Optimizer, head: HeadedModel, decay: float, rule: LayerDecayRule = "ulmfit"
) -> torch.optim.Optimizer:
    """The optimizer, its groups split by the multiples of their parameters.

    `factor` is the multiple of the learning rate, `gradient_factor` that of the clipped gradient.
    """
    power_of = powers(head, rule)
    multiples = {parameter: decay ** power_of[name] for name, parameter in head.named_parameters()}
    groups = list(optimizer.param_groups)
    optimizer.param_groups.clear()
    for group in groups:
        by_multiple = defaultdict[float, list[nn.Parameter]](list)
        for parameter in group["params"]:
            by_multiple[multiples[parameter]].append(parameter)
        for multiple, parameters in sorted(by_multiple.items()):
            rate, gradient = (1.0, multiple) if rule == "xlnet" else (multiple, 1.0)
            optimizer.add_param_group({**group, "params": parameters, "factor": rate, "gradient_factor": gradient})
    return optimizer


def fresh_tensors(head: HeadedModel, layers: int) -> set[str]:
    """The names of the tensors that begin anew: of the topmost `layers` layers, and of the head, such as the pooler.

    Raises:
        UserError: one of the layers shares its parts with a layer below them.
    """
    if not layers:
        return set()
    depth_of, top = depths(head)
    lowest = top - layers + 1
    for side, stack in head.model.stacks().items():
        first = len(stack.index_map) - layers
        kept = {part for applied in stack.index_map[: max(0, first)] for part in applied}
        if first > 0 and kept & {part for applied in stack.index_map[first:] for part in applied}:
            raise UserError(
                f"reinitialise_last: the {side}'s layers share parts, so the last {layers} cannot begin anew alone; "
                "give --unshare, too"
            )
    # A head with which a model has learnt to write is no part of its layers.
    return {name for name, depth in depth_of.items() if depth >= lowest and not name.startswith(("writer.", "heads."))}
