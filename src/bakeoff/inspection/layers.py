"""Measurements of a model's layers on text: how far a layer moves the hidden states, and the weights of its kernels.

Shapes: B batch, T length, D width, N kernels, K kernel size.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.config import Config
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.models.part import Wrapper
from bakeoff.models.stack import Stack


class Kernels(Config):
    """The convolution kernels of one part of a layer."""

    part: str
    """The name of the part, such as mixer."""
    kind: str
    """The class of the convolution, such as LightConv."""
    offsets: list[int]
    """The positions of the K taps relative to the output's position."""
    weights: list[list[float]]
    """(N, K) weights of the kernels; where they differ by token, their means over the text."""

    @property
    def mean_distance(self) -> float:
        """The mean distance of a tap from the output in tokens, weighted by absolute weights."""
        weights = torch.tensor(self.weights).abs()
        return float((weights * torch.tensor(self.offsets).abs()).sum() / weights.sum().clamp(min=1e-30))


class Layer(Config):
    """The change from a layer's input to its output, and the kernels of its convolutions."""

    stack: str
    """The name of the stack: encoder, decoder or backward_decoder."""
    layer: int
    """The number of the layer, from 1 on."""
    l2_distance: float | None
    """Mean Euclidean distance between a token's states before and after the layer; None: their widths differ."""
    cosine_similarity: float | None
    """Mean cosine of the angle between these states; None: their widths differ."""
    degrees: float | None
    """Mean angle between these states in degrees; None: their widths differ."""
    kernels: list[Kernels]
    """The kernels of each convolution in the layer."""


class _Sums:
    """Sums over batches for one layer."""

    def __init__(self) -> None:
        self.figures = torch.zeros(3, dtype=torch.float64)
        self.tokens = 0
        self.same_width = True
        self.kernels: dict[int, tuple[Tensor, int]] = {}  # index of a part -> sum of weights, number of summands


@torch.no_grad()
def layers_of(module: PretrainingModel, batches: Sequence[Batch], device: torch.device) -> list[Layer]:
    """Measure every layer of a model, which is in evaluation mode, on the tokens of batches, padding aside."""
    model = module.model
    stacks = model.stacks()
    sums = {name: [_Sums() for _ in stack.layers] for name, stack in stacks.items()}
    for batch in batches:
        row = batch.to(device).row
        last = "decoder" if model.decoder is not None else "encoder"
        inputs = model.stack_inputs(row)
        padding_mask = row.padding_mask if row.documents is None else row.documents > 0
        _add(sums[last], stacks[last], *inputs, _all(padding_mask, row.ids))
        if model.backward_decoder is not None:
            backwards = model.reversed_inputs(inputs[0], row)
            _add(sums["backward_decoder"], model.backward_decoder, *backwards, _all(padding_mask, row.ids).flip(1))
        if row.source is not None:
            source = row.source
            _add(
                sums["encoder"], stacks["encoder"], *model.source_inputs(source), _all(source.padding_mask, source.ids)
            )
    return [
        _layer(name, stack, number, layer_sums)
        for name, stack in stacks.items()
        for number, layer_sums in enumerate(sums[name], start=1)
    ]


def _all(padding_mask: Tensor | None, ids: Tensor) -> Tensor:
    """(B, T) padding mask, True for tokens."""
    return torch.ones_like(ids, dtype=torch.bool) if padding_mask is None else padding_mask


def _add(sums: list[_Sums], stack: Stack, x: Tensor, context: Context, padding_mask: Tensor) -> None:
    """Add the figures of one batch, without the rows of a second stream, which stand after the tokens."""
    length = padding_mask.shape[1]
    steps, context = stack.steps(x, context)
    for layer_sums, parts, states in zip(sums, stack.layers, steps, strict=True):
        before, after = states[0][:, :length][padding_mask].float(), states[-1][:, :length][padding_mask].float()
        layer_sums.tokens += len(before)
        layer_sums.same_width = before.shape == after.shape
        if layer_sums.same_width:
            cosine = F.cosine_similarity(before, after, dim=-1).clamp(-1, 1)
            distance = torch.linalg.vector_norm(after - before, dim=-1)
            layer_sums.figures += torch.stack(
                [v.sum().cpu().double() for v in (distance, cosine, cosine.acos().rad2deg())]
            )
        for index, (part, state) in enumerate(zip(parts, states, strict=False)):
            weights = part.kernels(state, context)
            if weights is not None:
                kernels = weights[None] if weights.dim() == 2 else weights[padding_mask]  # (n, N, K)
                total, count = layer_sums.kernels.get(index, (torch.zeros((), dtype=torch.float64), 0))
                layer_sums.kernels[index] = total + kernels.sum(0).cpu().double(), count + len(kernels)


def _layer(name: str, stack: Stack, number: int, layer_sums: _Sums) -> Layer:
    parts = stack.layers[number - 1]
    means = (layer_sums.figures / layer_sums.tokens).tolist() if layer_sums.same_width else [None] * 3
    return Layer(
        stack=name,
        layer=number,
        l2_distance=means[0],
        cosine_similarity=means[1],
        degrees=means[2],
        kernels=[
            Kernels(
                part=stack.index_map[number - 1][index][0],
                kind=type(part.function if isinstance(part := parts[index], Wrapper) else part).__name__,
                offsets=parts[index].offsets(),
                weights=(total / count).tolist(),
            )
            for index, (total, count) in layer_sums.kernels.items()
        ],
    )
