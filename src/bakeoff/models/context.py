"""What a layer is told: when it is built (the build context) and when it runs (the context)."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from torch import Tensor, nn

from bakeoff.models.packing import Packing

NormKind = Literal["layer", "rms"]


@dataclass(frozen=True)
class BuildContext:
    """The position of a layer or module in the model, from which a config builds its module."""

    width: int
    """D, the width of the hidden states that come in."""
    causal: bool
    """A position may look at itself and earlier ones only."""
    dropout: float
    """The model's dropout, which a part may override."""
    output_dropout: float = 0.0
    """Dropout of what leaves a stack's last layer."""
    norm_kind: NormKind = "layer"
    """What norms are: layer norms, or root-mean-square norms without mean and bias."""
    norm_epsilon: float = 1e-12
    """Epsilon of the norms."""
    norm_affine: bool = True
    """Norms have a scale and a shift."""
    norm_bias: bool = True
    """Layer norms that have a scale have a shift, too."""
    bias: bool = True
    """Linear maps have biases."""
    source: int | None = None
    """Width of the encoder's output that the layers attend to; None where there is no encoder."""
    layer: int = 0
    """Index of the layer, for settings that differ by layer."""

    def at(self, layer: int, width: int) -> "BuildContext":
        """The build context of another layer, whose input has that width."""
        return replace(self, layer=layer, width=width)

    def norm(self, width: int | None = None, affine: bool | None = None) -> nn.Module:
        """A norm over the width, or over another `width`; `affine` overrides whether it has a scale and a shift."""
        has = self.norm_affine if affine is None else affine
        if self.norm_kind == "rms":
            return nn.RMSNorm(width or self.width, eps=self.norm_epsilon, elementwise_affine=has)
        return nn.LayerNorm(width or self.width, eps=self.norm_epsilon, elementwise_affine=has, bias=self.norm_bias)


class Context(NamedTuple):
    """What every layer of one forward pass may need; made once a pass."""

    real: Tensor | None = None
    """(B, T) True for tokens, False for padding; None where there is no padding or `documents` says it."""
    documents: Tensor | None = None
    """(B, T) document of each token, 0 for padding; tokens see their own document only. None: one document a row."""
    attention_mask: Tensor | None = None
    """(B or 1, 1, T or 1, S) True where the position of the third axis may attend to that of the fourth."""
    attention_bias: Tensor | None = None
    """(1, H, T, S) added to the scores of attention; made by the stack whose layers share it."""
    distances: Tensor | None = None
    """(N, D) vectors of N buckets of distances, which the layers of `disentangled_attention` share."""
    positions: Tensor | None = None
    """(B, T + N) position of each row, where rows of a second stream follow those of the tokens."""
    segments: Tensor | None = None
    """(B, T + N) segment of each row, for mixers that look at segments."""
    backwards: Tensor | None = None
    """(B,) True for rows that are a text from its end to its beginning, for mixers that tell before from behind."""
    queries: int = 0
    """N, the number of rows of the second stream; keys and values come from the rows before them alone."""
    remembered: int | None = None
    """How many of the first tokens a state takes up, where it does not take all; for `relative_attention`."""
    banded: bool = False
    """What can be remembered is all that is seen of what was before, wherever a chunk begins."""
    start: int = 0
    """Position of the first token: the number of tokens that the state remembers."""
    gaps: Tensor | None = None
    """(B,) how many of the places before and in the chunk stand before each row's first token; None: none do."""
    in_place: bool = False
    """Remembered keys and values have room behind them, into which the next ones are written."""
    packing: Packing | None = None
    """The layout of packed states, (1, N, D) of tokens alone; all other fields are about (B, T) rows with padding."""
    wanted: Tensor | None = None
    """(B, M) places of each row whose states are wanted; None: all places."""
    source: Tensor | None = None
    """(B, U, D) output of the encoder, for cross-attention."""
    source_mask: Tensor | None = None
    """(B, 1, 1, U) True where the source is a token."""

    @property
    def owners(self) -> Tensor | None:
        """(B, T) the number of each token's document, or True for a token; 0 or False for padding."""
        return self.real if self.documents is None else self.documents
