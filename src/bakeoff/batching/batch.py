"""The batch: the tensors that models and objectives read."""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from bakeoff.models.inputs import Inputs, Queries, Source


@dataclass(frozen=True)
class Batch:
    """One batch, or a micro-batch of it; B rows, T length."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None
    """(B, T) segment ids, or None for segment 0 everywhere."""
    real: Tensor | None
    """(B, T) padding mask, True for tokens; None where there is no padding or `documents` is given."""
    documents: Tensor | None
    """(B, T) document ids, 0 for padding; None where every row is one document."""
    targets: dict[str, tuple[Tensor, Tensor]]
    """For each objective, by name: (n,) rows of the hidden states flattened to (B * T * directions, D), and (n,)
    labels.
    """
    tokens: int
    """Number of tokens, those of the source included, padding not counted."""
    source: Source | None = None
    """The input of the encoder, for a model that also has a decoder."""
    queries: Queries | None = None
    """The second stream, whose rows follow those of the tokens in the hidden states: (B, T + N, D)."""
    backwards: Tensor | None = None
    """(B,) True for rows that read the text from its end; None: none does."""
    prefix: Tensor | None = None
    """(B,) number of tokens at the beginning of each row that all tokens of the row see; None: none."""
    follows: Tensor | None = None
    """(B,) True where the second segment continues the first, for formats that draw it although no objective predicts
    it. For display alone; no model reads it.
    """
    advance: int | None = None
    """Number of tokens by which the same row of the next batch begins further on, where rows continue each other; None:
    rows stand alone.
    """

    @property
    def inputs(self) -> Inputs:
        """The part of the batch that a model reads."""
        rows = self.ids, self.segments, self.real, self.documents
        return Inputs(*rows, self.source, self.queries, self.backwards, self.prefix)

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device."""
        if device.type == "cpu":
            return self

        def move(tensor: Tensor | None) -> Tensor | None:
            if tensor is None or device.type != "cuda":
                return None if tensor is None else tensor.to(device)
            return tensor.pin_memory().to(device, non_blocking=True)

        return Batch(
            cast(Tensor, move(self.ids)),
            move(self.segments),
            move(self.real),
            move(self.documents),
            {name: (cast(Tensor, move(r)), cast(Tensor, move(y))) for name, (r, y) in self.targets.items()},
            self.tokens,
            self.source and Source(cast(Tensor, move(self.source.ids)), move(self.source.real)),
            self.queries and Queries(*(cast(Tensor, move(each)) for each in self.queries)),
            move(self.backwards),
            move(self.prefix),
            self.follows,
            self.advance,
        )
