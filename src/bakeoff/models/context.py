"""Information for layers: when they are built (the build context) and when they run (the context)."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from bakeoff.models.first_values import FirstValues
from bakeoff.models.norms import RMSNorm
from bakeoff.models.packing import Packing
from bakeoff.row import Row

NormKind = Literal["layer", "rms"]


@dataclass(frozen=True)
class BuildContext:
    """The place of a layer or module in the model, from which a config builds its module."""

    width: int
    """D, the width of the input's hidden states."""
    causal: bool
    """Positions see only themselves and earlier positions."""
    dropout: float
    """The model's dropout, which a part may override."""
    output_dropout: float = 0.0
    """Dropout of the output of a stack's last layer."""
    norm_kind: NormKind = "layer"
    """The kind of norms: layer norms, or root-mean-square norms without mean and bias."""
    norm_epsilon: float = 1e-12
    """Epsilon of the norms."""
    norm_affine: bool = True
    """Norms have a scale and a shift."""
    norm_bias: bool = True
    """Layer norms with a scale have a shift, too."""
    bias: bool = True
    """Linear layers have biases."""
    source: int | None = None
    """Width of the encoder's output that the layers attend to; None where there is no encoder."""
    layer: int = 0
    """Index of the layer from 0, for settings that differ by layer."""

    def at(self, layer: int, width: int) -> "BuildContext":
        """The build context of layer `layer`, whose input has width `width`."""
        return replace(self, layer=layer, width=width)

    def norm(self, width: int | None = None, affine: bool | None = None) -> nn.Module:
        """A norm over the width, or over another `width`; `affine` overrides whether it has a scale and a shift."""
        has = self.norm_affine if affine is None else affine
        if self.norm_kind == "rms":
            return RMSNorm(width or self.width, self.norm_epsilon, elementwise_affine=has)
        return nn.LayerNorm(width or self.width, eps=self.norm_epsilon, elementwise_affine=has, bias=self.norm_bias)


UNKNOWN: Row[Tensor] = Row(torch.empty(0, 0, dtype=torch.int64))
"""A row of which nothing is known: one document, without padding."""


class Context(NamedTuple):
    """What layers may need besides their input, made once a forward pass: the row, and facts that layers share."""

    row: Row[Tensor] = UNKNOWN
    """The rows that are read, with all their signals. Segments go on over the rows of a second stream, (B, T + N). By
    default nothing is known of them: each row is one document, without padding.
    """
    attention_mask: Tensor | None = None
    """(B or 1, 1, T or 1, S) True where a position of the third axis may attend to one of the fourth."""
    bounds: Tensor | None = None
    """(N + 1,) int32 the first of the B * T positions of each document, and B * T, where attention is within documents
    and without a mask (`ops/document_attention.py`); then `attention_mask` is None. None: it is by the mask."""
    attention_bias: Tensor | None = None
    """(1, H, T, S) bias added to the scores of attention; made by the stack, whose layers share it."""
    distances: Tensor | None = None
    """(N, D) vectors of N buckets of distances, shared by the layers of `disentangled_attention`."""
    first_values: FirstValues | None = None
    """The values of the first layer that has `value_residual`, in all layers that have it."""
    value_share: Tensor | None = None
    """(1,) the share of these in the layer's values; None in the first of these layers."""
    positions: Tensor | None = None
    """(B, T + N) positions of the tokens, followed by those of the second stream's rows."""
    remembered: int | None = None
    """Number of first tokens that a state takes up, if not all; for `relative_attention`."""
    banded: bool = False
    """Each token sees as many earlier tokens as the memory holds, wherever a chunk begins."""
    start: int = 0
    """Position of the first token: the number of tokens that the state remembers."""
    gaps: Tensor | None = None
    """(B,) number of positions, in the text so far, before each row's first token; None: no row has any."""
    room: int = 0
    """Number of positions of the memory into which the next keys and values are written, after the remembered ones; 0:
    they are copied together."""
    packing: Packing | None = None
    """The layout of packed states, which are (1, N, D) of tokens alone, one row after the other without padding; None:
    states are (B, T, D). All other fields are for (B, T) rows with padding in any case.
    """
    wanted: Tensor | None = None
    """(B, M) positions of each row whose states are wanted; None: all positions."""
    beside: Tensor | None = None
    """(B, T, D) the residual connection, which a part that `adds` adds to its output. None: it is added elsewhere."""
    source: Tensor | None = None
    """(B, U, D) output of the encoder, for attention to the source."""
    source_mask: Tensor | None = None
    """(B, 1, 1, U) padding mask of the source, True for tokens."""
    source_bounds: tuple[Tensor, Tensor] | None = None
    """What `bounds_of_source` gives, where attention is to the tokens of the source without a mask; None: it is by the
    mask."""

    @property
    def queries(self) -> int:
        """N, the number of rows of the second stream; keys and values come from the rows before them alone."""
        return 0 if self.row.queries is None else self.row.queries.positions.shape[1]
