"""The hidden states of any layer of a model. Shapes: B batch, T length, D width, L layers."""

from collections.abc import Sequence
from numbers import Integral

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.models.context import Context
from bakeoff.models.model import Model
from bakeoff.models.model_config import ModelBaseConfig
from bakeoff.models.stack import Stack, StackConfig
from bakeoff.row import Row, Source


def layer_index(layer: int, layers: int, where: str) -> int:
    """The number of a layer from 0 on: 0 for the input of the first layer, L for the output of the last of L layers.

    Args:
        layer: a number from 0 to L, or from the end: -1 for the output of the last layer.
        layers: L, the number of layers.
        where: the run's path, for errors.

    Raises:
        UserError: there is no such layer.
    """
    if not isinstance(layer, Integral) or isinstance(layer, bool):
        raise UserError(f"{where}: layer {layer!r:.80}: give a whole number, from 0 to {layers}, or -1 for the last")
    if not -layers - 1 <= layer <= layers:
        raise UserError(f"{where}: layer {layer}: the model has {layers}; 0 is the input of the first")
    return layer if layer >= 0 else layers + 1 + layer


def pooled_stack(model: ModelBaseConfig) -> StackConfig:
    """The stack whose states are pooled: the encoder of an encoder with a decoder, else the only one."""
    stack = model.encoder if model.sequence_to_sequence else model.stack
    assert stack is not None
    return stack


def layer_width(model: ModelBaseConfig, layer: int) -> int:
    """D, the width of the states of a layer, counted as from `layer_index`."""
    stack = pooled_stack(model)
    width = stack.width
    for index, block in enumerate(stack.layer_blocks()[:layer]):
        width = block.output_width(width, index)
    return model.directions * width


def common_width(model: ModelBaseConfig, layers: Sequence[int], where: str) -> int:
    """D, the width that some layers have in common, which are counted as from `layer_index`.

    Raises:
        UserError: they differ, and cannot be averaged.
    """
    widths = {layer_width(model, layer) for layer in layers}
    if len(widths) > 1:
        raise UserError(f"{where}: layers {tuple(layers)} have different widths, which cannot be averaged")
    return widths.pop()


def text_states(
    model: Model, batch: Row[Tensor], layers: Sequence[int], reads_both_sides: bool
) -> tuple[list[Tensor], Tensor]:
    """The (B, T, D) states of rows of single texts after each of some layers, and (B, T) True where no padding is.

    Args:
        model: the model.
        batch: the rows, as `InputFormat` makes them.
        layers: numbers of layers as from `layer_index`, in rising order.
        reads_both_sides: whether a decoder has learnt to read rows from both sides.
    """
    if model.config.sequence_to_sequence:  # its sources begin without [CLS]
        batch = Row(batch.ids[:, 1:], None, None if batch.padding_mask is None else batch.padding_mask[:, 1:])
    padding_mask = torch.ones_like(batch.ids, dtype=torch.bool) if batch.padding_mask is None else batch.padding_mask
    prefix = padding_mask.sum(1) if reads_both_sides else None  # the whole row is the prefix
    inputs = Row(batch.ids, batch.segments, batch.padding_mask, prefix=prefix)
    return layer_states(model, inputs, layers), padding_mask


def layer_states(model: Model, row: Row[Tensor], layers: Sequence[int]) -> list[Tensor]:
    """The (B, T, D) output of each layer in `layers`, of the encoder if there is an encoder and a decoder.

    For a model with two directions, both are concatenated, (B, T, 2 D).

    Args:
        model: the model.
        row: rows of tokens.
        layers: numbers of layers as from `layer_index`, in rising order.
    """
    if model.config.sequence_to_sequence:
        assert model.encoder is not None
        return _outputs(model.encoder, *model.source_inputs(Source(row.ids, row.padding_mask)), layers)
    x, context = model.stack_inputs(row)
    states = _outputs(model.stack, x, context, layers)
    if model.backward_decoder is None:
        return states
    backwards = _outputs(model.backward_decoder, *model.reversed_inputs(x, row), layers)
    return [torch.cat([one, other.flip(1)], dim=-1) for one, other in zip(states, backwards, strict=True)]


def _outputs(stack: Stack, x: Tensor, context: Context, layers: Sequence[int]) -> list[Tensor]:
    """The outputs of layers in one stack."""
    last = len(stack.layers)
    if list(layers) == [last]:  # other states need not be held
        return [stack(x, context)[0]]
    outputs = stack.outputs(x, context)
    outputs[last] = stack.norm(outputs[last])
    return [outputs[layer] for layer in layers]
