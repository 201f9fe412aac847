"""Graphs of models that generate text: a step of the decoder with its state, and the encoder of a source.

Shapes: B batch, T length, R tokens read before, U tokens of a source, D width, H heads, V vocabulary.
"""

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.onnx.graphs import Graph, Input, row_inputs
from bakeoff.interop.onnx.states import StateTensors, source_reader
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.ops.attention_heads import split_heads
from bakeoff.row import Row, Source


class OfDecoder(Graph):
    """A step of a decoder: (B, T, V) `logits` of the next tokens, and the state after the last token.

    A text begins with a state of zeros, whose growing axes have size 0; each call returns the state for the next call.
    A decoder with an encoder also reads the outputs of `OfSource`.

    Args:
        model: a causal model, or one with an encoder and a decoder.
        writer: the head that predicts next tokens.
        reads_prefix: whether the tokens of a text's first chunk see each other.
        where: the run's path, for errors.
    """

    def __init__(self, model: Model, writer: Head, reads_prefix: bool, where: str) -> None:
        super().__init__()
        self.model, self.writer, self.reads_prefix = model, writer, reads_prefix
        self.state = StateTensors(model, where)
        self.counted = reads_prefix or self.state.needs_count()
        """Whether `past_ids`, the tokens read before, is an input; their number alone matters."""
        self.inputs = [Input("input_ids", ("batch", "length"))]
        if self.counted:
            self.inputs.append(Input("past_ids", ("batch", "past")))
        self.sources = source_axes(self.state)
        if self.sources:
            self.inputs.append(Input("encoder_attention_mask", ("batch", "source")))
        self.inputs += [Input(f"source.{index}", axes, False) for index, axes in enumerate(self.sources)]
        self.inputs += [Input(f"past.{index}", axes, False) for index, axes in enumerate(self.state.axes)]
        self.outputs = [("logits", ("batch", "length", "vocabulary"))]
        # The axis of a grown state needs another name than the axis of the state before.
        present = [tuple("total" if axis == "past" else str(axis) for axis in axes) for axes in self.state.axes]
        self.outputs += [(f"present.{index}", axes) for index, axes in enumerate(present)]
        if reads_prefix:
            if any(mixer.attention_window is not None for mixer in model.config.mixers):
                raise UserError(f"{where}: a window within a prefix is not written as ONNX; --to hf can take it")
            object.__setattr__(model, "_mask_of_chunk", _of_prefix)

    def forward(self, input_ids: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The logits, and the tensors of the state after the last token."""
        rest = iter(tensors)
        before = next(rest) if self.counted else None
        mask = (next(rest) != 0) if self.sources else None
        sources = [next(rest) for _ in self.sources]
        past = list(rest)
        read = 0
        if before is not None:
            read = before.shape[1]
        elif self.state.length_input is not None:
            read = past[self.state.length_input[0]].shape[self.state.length_input[1]]
        state = self.state.filled(read, past, sources, None if mask is None else keys_of_source(mask))
        hidden, after = self.model(Row(input_ids), state)
        scores = self.writer.scores(hidden.flatten(0, 1), self.model.embedding.weight)
        logits = scores.unflatten(0, (input_ids.shape[0], input_ids.shape[1]))
        return logits, *self.state.tensors(after)


class OfSource(Graph):
    """An encoder before a decoder: the keys and values of a source for each layer of the decoder.

    `source.0`, `source.1`, ... are the first layer's keys, its values, the second layer's keys, ...: (B, H, U, d) with
    the width d of a head.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.readers = [part for layer in model.stack.layers for each in layer if (part := source_reader(each))]
        self.inputs = row_inputs(False)
        axes = [("batch", str(part.heads), "length", str(width)) for part in self.readers for width in part.widths]
        self.outputs = [(f"source.{index}", shape) for index, shape in enumerate(axes)]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """The keys and values of each cross-attention, in the order of the outputs."""
        encoded, _ = self.model.encode(Source(input_ids, attention_mask != 0))
        tensors: list[Tensor] = []
        for part in self.readers:
            tensors += split_heads(part.key_value(encoded), part.heads, part.widths)
        return tuple(tensors)


def source_axes(state: StateTensors) -> list[tuple[int | str, ...]]:
    """The axes of the keys and values that a decoder reads of its source."""
    return [("batch", part.heads, "source", width) for part in state.cross for width in part.widths]


def keys_of_source(padding_mask: Tensor) -> Tensor:
    """(B, 1, 1, U) attention mask of a source's (B, U) padding mask; a row without tokens attends to its padding."""
    return (padding_mask | ~padding_mask.any(-1, keepdim=True))[:, None, None]


def _of_prefix(row: Row[Tensor], state: ModelState, remembered: int | None) -> Tensor:
    """(B, 1, T, R + T) attention mask: causal, but full in a text's first chunk."""
    ids, length, read = row.ids, row.ids.shape[1], state.tokens
    causal = torch.ones(length, read + length, dtype=torch.bool, device=ids.device).tril(read)
    first = ids.new_ones(ids.shape[0], read).sum(1) == 0
    return causal | first[:, None, None, None]
