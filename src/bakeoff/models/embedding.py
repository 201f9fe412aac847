"""The embedding: from token ids to the first hidden states."""

import math
from typing import Literal, Self, cast

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.context import BuildContext
from bakeoff.models.initialisation import InitialConfig, initialise
from bakeoff.ops.dropout import dropout
from bakeoff.ops.norm import norm_alone, rounded
from bakeoff.row import Row


class EmbeddingConfig(Config):
    """The sum of token, position and segment embeddings; narrower than the model where it is factorised (ALBERT)."""

    width: int | None = Field(default=None, gt=0)
    """E, the tables' width; a linear layer changes it to the model's width where they differ. Absent: the model's
    width.
    """
    positions: Literal["none", "learned", "sinusoidal"] = "learned"
    """Absolute positions: none, a learned table, or the sine and cosine waves of Vaswani et al. 2017, section 3.5."""
    waves: Literal["alternating", "halves"] = "alternating"
    """The layout of sinusoidal positions: sine and cosine of each rate side by side (alternating; the paper); or all
    sines, then all cosines, counted from `first_wave`, with 1 / 10000 as the last rate (halves; fairseq and
    tensor2tensor).
    """
    first_wave: int = Field(default=0, ge=0)
    """The number of a text's first position; 2 in fairseq, where padding has the number 1."""
    length: int = Field(default=512, gt=0)
    """Number of rows of the learned position table, which is the length of the model's longest input."""
    segments: int = Field(default=0, ge=0)
    """Number of rows of the segment table; 0: there is none."""
    norm: bool = True
    """Norm of the sum (BERT), before dropout and the factorisation's linear layer."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the sum; the model's dropout where absent."""
    initial: InitialConfig | None = None
    """The initial distribution of the table of tokens. Absent: that of all tables, a truncated normal distribution of
    deviation 0.02; with sinusoidal positions a normal one of deviation 1 / sqrt(E), which the scaling by sqrt(E) makes
    1.
    """

    projection_initial: Literal["linear", "glorot"] = "linear"
    """The initial distribution of the factorisation's linear layer: that of all linear layers, or uniform within sqrt(6
    / (E + D)) of zero (Glorot and Bengio 2010; ELECTRA's code, by TensorFlow's default).
    """

    @model_validator(mode="after")
    def _waves_of_sinusoids(self) -> Self:
        if self.positions != "sinusoidal" and (self.waves != "alternating" or self.first_wave):
            raise ValueError(
                f"waves, first_wave: they belong to positions: sinusoidal, not {self.positions}; leave them out"
            )
        return self

    def build(self, vocabulary: int | None, context: BuildContext) -> "Embedding":
        """The embedding for a vocabulary of that size; None: it uses the token table of another embedding."""
        return Embedding(self, vocabulary, context)


class Embedding(nn.Module):
    """projection(dropout(norm(token + position + segment))); B batch, T length, E embedding width, D model width."""

    def __init__(self, config: EmbeddingConfig, vocabulary: int | None, context: BuildContext) -> None:
        super().__init__()
        width = config.width or context.width
        self.tokens = None if vocabulary is None else nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(config.length, width) if config.positions == "learned" else None
        self.segments = nn.Embedding(config.segments, width) if config.segments else None
        self.norm = context.norm(width) if config.norm else nn.Identity()
        self.projection = nn.Linear(width, context.width) if width != context.width else nn.Identity()
        self.sinusoidal = config.positions == "sinusoidal"
        self.halves, self.first_wave = config.waves == "halves", config.first_wave
        self.initial = config.initial
        if self.sinusoidal and self.initial is None:
            self.initial = InitialConfig(kind="normal", scale=width**-0.5)
        self.glorot = config.projection_initial == "glorot"
        self.dropout = context.dropout if config.dropout is None else config.dropout

    def initialise(self) -> None:
        """Draw the initial weights; the table of tokens may have its own distribution."""
        for child in self.children():
            initialise(child)
        if self.initial is not None and self.tokens is not None:
            self.initial.fill(self.tokens.weight)
        if self.glorot and isinstance(self.projection, nn.Linear):
            nn.init.xavier_uniform_(self.projection.weight)

    @property
    def vocabulary(self) -> int:
        """V, the number of tokens."""
        assert self.tokens is not None
        return len(self.tokens.weight)

    @property
    def weight(self) -> Tensor:
        """(V, E) the vectors of the tokens."""
        assert self.tokens is not None
        return self.tokens.weight

    def forward(
        self, row: Row[Tensor], start: int = 0, weight: Tensor | None = None, gaps: Tensor | None = None
    ) -> Tensor:
        """(B, T, D) hidden states before the first layer: the `vectors` at the model's width."""
        return cast(Tensor, self.projection(self.vectors(row, start, weight, gaps)))

    def vectors(
        self, row: Row[Tensor], start: int = 0, weight: Tensor | None = None, gaps: Tensor | None = None
    ) -> Tensor:
        """The tables' vectors of the tokens: the sum, after its norm and dropout.

        Args:
            row: the tokens and their segments.
            start: position of the first token.
            weight: (V, E) the vectors of the tokens; the embedding's where absent.
            gaps: (B,) number of positions before the first token of each row, which has position 0; None: none.

        Returns:
            (B, T, E).
        """
        length, device = row.ids.shape[1], row.ids.device
        x = F.embedding(row.ids, self.weight if weight is None else weight)
        positions = None
        if gaps is not None:  # what stands in them, or after a row's last position, is not looked at
            positions = (torch.arange(start, start + length, device=device) - gaps[:, None]).clamp(min=0)  # (B, T)
        if self.positions is not None:
            rows = self.positions.weight
            x = x + (rows[start : start + length] if positions is None else rows[positions.clamp(max=len(rows) - 1)])
        if self.sinusoidal:
            # Vaswani et al. scale the tokens, which begin at a deviation of 1 / sqrt(E), up to the waves' size.
            if positions is None:
                positions = torch.arange(start, start + length, device=device)
            made = halved_sinusoids if self.halves else sinusoids
            x = x * math.sqrt(x.shape[-1]) + made(positions + self.first_wave, x.shape[-1])
        if self.segments is not None:
            x = x + (self.segments.weight[0] if row.segments is None else self.segments(row.segments))
        return dropout(norm_alone(rounded(x), self.norm), self.dropout, self.training)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass: the factorisation's linear layer."""
        projection = self.projection
        return 2 * projection.in_features * projection.out_features if isinstance(projection, nn.Linear) else 0


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """(..., E) PE[t, 2i] = sin(t / 10000^(2i / E)) and PE[t, 2i + 1] its cosine (Vaswani et al. 2017, section 3.5)."""
    rates = 10_000.0 ** (-torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width)
    angles = positions.float()[..., None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]


def halved_sinusoids(positions: Tensor, width: int) -> Tensor:
    """(..., E) sines of rates 10000^(-i / (E / 2 - 1)), then their cosines, as fairseq has them; 0 at an odd end."""
    half = width // 2
    numbers = torch.arange(half, device=positions.device, dtype=torch.float32)
    angles = positions.float()[..., None] * torch.exp(numbers * -(math.log(10_000) / max(1, half - 1)))
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=-1), (0, width % 2))
