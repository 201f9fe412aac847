"""What each layer of a model does to a text: how far it moves the states, and what its convolutions weigh.

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
    """The kernels of one part of a layer."""

    part: str
    """The part, such as mixer."""
    kind: str
    """The class that convolves, such as LightConv."""
    offsets: list[int]
    """Where the taps look, relative to the output's position."""
    weights: list[list[float]]
    """Each kernel's weights; where they differ by token, their mean over the text."""

    @property
    def mean_distance(self) -> float:
        """How many tokens away the weight lies on average, by absolute value."""
        weights = torch.tensor(self.weights).abs()
        return float((weights * torch.tensor(self.offsets).abs()).sum() / weights.sum().clamp(min=1e-30))


class Layer(Config):
    """What a layer does to its input, and the kernels of its convolutions."""

    stack: str
    """encoder, decoder, or backward_decoder."""
    layer: int
    """Its number, counted from 1."""
    l2_distance: float | None
    """Euclidean distance of a token's states behind and before the layer, mean; None where their widths differ."""
    cosine_similarity: float | None
    """Cosine of the angle between them, mean."""
    degrees: float | None
    """The angle, mean."""
    kernels: list[Kernels]
    """Its convolutions'."""


class _Sums:
    """Running sums of one layer over the batches."""

    def __init__(self) -> None:
        self.figures = torch.zeros(3, dtype=torch.float64)
        self.tokens = 0
        self.same_width = True
        self.kernels: dict[int, tuple[Tensor, int]] = {}  # part's place -> sum of weights, how many are in it


@torch.no_grad()
def layers_of(module: PretrainingModel, batches: Sequence[Batch], device: torch.device) -> list[Layer]:
    """Measure every layer of a model in evaluation mode, on the real tokens of the batches."""
    model = module.model
    stacks = model.stacks()
    sums = {name: [_Sums() for _ in stack.layers] for name, stack in stacks.items()}
    for batch in batches:
        moved = batch.to(device)
        last = "decoder" if model.decoder is not None else "encoder"
        inputs = model.stack_inputs(moved.inputs)
        real = moved.real if moved.documents is None else moved.documents > 0
        _add(sums[last], stacks[last], *inputs, _all(real, moved.ids))
        if model.backward_decoder is not None:
            backwards = model.reversed_inputs(inputs[0], moved.inputs)
            _add(sums["backward_decoder"], model.backward_decoder, *backwards, _all(real, moved.ids).flip(1))
        if moved.source is not None:
            source = moved.source
            _add(sums["encoder"], stacks["encoder"], *model.source_inputs(source), _all(source.real, source.ids))
    return [
        _layer(name, stack, number, own)
        for name, stack in stacks.items()
        for number, own in enumerate(sums[name], start=1)
    ]


def _all(real: Tensor | None, ids: Tensor) -> Tensor:
    """(B, T) which tokens are no padding."""
    return torch.ones_like(ids, dtype=torch.bool) if real is None else real


def _add(sums: list[_Sums], stack: Stack, x: Tensor, context: Context, real: Tensor) -> None:
    """Add the figures of one batch; rows of a second stream, which stand behind the tokens, are left out."""
    length = real.shape[1]
    steps, context = stack.steps(x, context)
    for own, parts, states in zip(sums, stack.layers, steps, strict=True):
        before, after = states[0][:, :length][real].float(), states[-1][:, :length][real].float()
        own.tokens += len(before)
        own.same_width = before.shape == after.shape
        if own.same_width:
            cosine = F.cosine_similarity(before, after, dim=-1).clamp(-1, 1)
            distance = torch.linalg.vector_norm(after - before, dim=-1)
            own.figures += torch.stack([v.sum().cpu().double() for v in (distance, cosine, cosine.acos().rad2deg())])
        for place, (part, state) in enumerate(zip(parts, states, strict=False)):
            weights = part.kernels(state, context)
            if weights is not None:
                found = weights[None] if weights.dim() == 2 else weights[real]  # (n, N, K)
                total, count = own.kernels.get(place, (torch.zeros((), dtype=torch.float64), 0))
                own.kernels[place] = total + found.sum(0).cpu().double(), count + len(found)


def _layer(name: str, stack: Stack, number: int, own: _Sums) -> Layer:
    parts = stack.layers[number - 1]
    means = (own.figures / own.tokens).tolist() if own.same_width else [None] * 3
    return Layer(
        stack=name,
        layer=number,
        l2_distance=means[0],
        cosine_similarity=means[1],
        degrees=means[2],
        kernels=[
            Kernels(
                part=stack.index_map[number - 1][place][0],
                kind=type(part.function if isinstance(part := parts[place], Wrapper) else part).__name__,
                offsets=parts[place].offsets(),
                weights=(total / count).tolist(),
            )
            for place, (total, count) in own.kernels.items()
        ],
    )
