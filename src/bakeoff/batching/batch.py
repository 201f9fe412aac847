"""The batch: the tensors that models and objectives read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.machine.transfer import pinned, sent
from bakeoff.row import Row, mapped


@dataclass(frozen=True)
class Batch:
    """One batch, or a micro-batch of it; B rows, T length."""

    row: Row[Tensor]
    """The B rows, as a model reads them."""
    targets: Mapping[str, tuple[Tensor, Tensor]]
    """For each objective, by name: (n,) positions among the hidden states flattened to (B * T * directions, D), in
    rising order, and (n,) labels. The hidden states of a second stream follow those of the tokens in each row:
    (B, T + N, D).
    """
    tokens: int = 0
    """Number of tokens, those of the source included, padding not counted; 0: not counted."""
    advance: int | None = None
    """Number of tokens by which the same row of the next batch begins further on, where rows continue each other; None:
    rows stand alone, or all their tokens are remembered.
    """
    number: int = 0
    """Its number in the whole batch of a step, by which the model's randomness and memory find it again."""
    first_row: int = 0
    """Number of rows of the whole batch before its own."""
    apart: tuple[Tensor, Tensor] | None = None
    """The numbers of the rows that are read from both sides, and of those whose tokens see no later ones, where an
    encoder reads rows of both kinds; None: all are of one kind."""
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    """For objectives that weigh their targets: the (n,) weight of the loss of each."""
    counted_rows: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """For objectives whose loss is divided by another number than that of their targets: this number of each row."""
    counted: float = 1
    """How many rows each of its rows counts for in a measurement; see `Selection`."""
    parts: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    """For objectives whose heads treat rows by their labels: for each kind the (m,) indices of its labels; empty where
    the head works them out."""

    def count(self, name: str) -> int:
        """The number by which an objective's summed loss is divided, once for the whole batch."""
        of_rows = self.counted_rows.get(name)
        return len(self.targets[name][0]) if of_rows is None else int(of_rows.sum())

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device, without waiting for it."""
        return self if device.type == "cpu" else self._mapped(partial(sent, device=device))

    def pinned(self, device: torch.device) -> "Batch":
        """The batch in memory that a device reads by itself; to be called in the thread that makes batches."""
        return self if device.type == "cpu" else self._mapped(partial(pinned, device=device))

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        targets = {name: (function(positions), function(labels)) for name, (positions, labels) in self.targets.items()}
        weights = {name: function(each) for name, each in self.weights.items()}
        apart = None if self.apart is None else (function(self.apart[0]), function(self.apart[1]))
        parts = {name: tuple(map(function, indices)) for name, indices in self.parts.items()}
        return replace(self, row=mapped(self.row, function), targets=targets, apart=apart, weights=weights, parts=parts)


def asked_everywhere(row: Row[Tensor], objective: str) -> Batch:
    """A batch that asks the head of an objective at every position of rows, read forwards; the labels say nothing."""
    positions = torch.arange(row.ids.numel(), device=row.ids.device)
    return Batch(row._replace(forwards=True), {objective: (positions, positions)})
