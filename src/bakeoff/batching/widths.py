"""The widths to which rows are padded where several processes make the rows of one batch, each its own alone.

Shapes: B rows, T length, U length of the source, P rows of the second stream.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.row import Row, Source, signals
from bakeoff.spans import spans_of

Widths = tuple[int, ...]
"""T, U and P; 0 for what rows do not have."""

NONE: Widths = (0, 0, 0)
"""The widths of no rows at all."""


def widths_of(batches: Sequence[Batch]) -> Widths:
    """The largest widths among batches."""
    each = [_widths(batch.row) for batch in batches]
    return tuple(max(sizes) for sizes in zip(*each, strict=True)) if each else NONE


def _widths(row: Row[Tensor]) -> Widths:
    source, queries = row.source, row.queries
    sides = 0 if source is None else source.ids.shape[1], 0 if queries is None else queries.positions.shape[1]
    return row.ids.shape[1], *sides


def widened(batch: Batch, widths: Widths, pad: int, directions: int) -> Batch:
    """The batch with its rows padded to widths, as if they had been made together with rows of these widths.

    Args:
        batch: B rows, none wider than that.
        widths: T, U and P.
        pad: the id of the token for padding.
        directions: number of hidden states of each position.
    """
    row, old = batch.row, _widths(batch.row)
    if old == widths:
        return batch
    wider = _Wider(old, widths, pad)
    if widths[0] > old[0] and row.documents is None and row.padding_mask is None:
        row = row._replace(padding_mask=torch.ones_like(row.ids, dtype=torch.bool))
    if widths[1] > old[1] and row.source is not None and row.source.padding_mask is None:
        unmasked = torch.ones_like(row.source.ids, dtype=torch.bool)
        row = row._replace(source=row.source._replace(padding_mask=unmasked))
    targets = {name: (wider.moved(rows, directions), labels) for name, (rows, labels) in batch.targets.items()}
    row = wider.padded(row)
    spans = None if row.owners is None else spans_of(row.owners)
    return replace(batch, row=row._replace(spans=spans), targets=targets)


class _Wider:
    """Rows of some widths padded to others, as the declaration of their signals says."""

    def __init__(self, old: Widths, new: Widths, pad: int) -> None:
        self.old, self.new, self.pad = old, new, pad

    def padded(self, row: Any, tokens: str = "T") -> Any:
        """A row, or a source or second stream in it; `tokens` is the width of its tokens."""
        known, values = signals(type(row)), {}
        for name, value in row._asdict().items():
            if isinstance(value, tuple):
                values[name] = self.padded(value, "U" if isinstance(value, Source) else "T")
            elif name in known and value is not None:
                fill = self.pad if known[name].fill is None else known[name].fill
                values[name] = self.signal(value, known[name].axes.replace("T", tokens).replace("N", "P"), fill)
            else:
                values[name] = value
        return type(row)(**values)

    def signal(self, value: Tensor, axes: str, fill: int | None) -> Tensor:
        """(B, ...) values of a signal, with its axes after that of the rows."""
        for axis, letter in enumerate(axes, 1):
            if letter == "S":  # the rows of a second stream begin after the padding of the tokens
                parts = value.split([self.old[0], self.old[2]], axis)
                value = torch.cat(
                    [self._wide(part, axis, width, fill) for part, width in zip(parts, "TP", strict=True)], axis
                )
            elif letter in "TUP":
                value = self._wide(value, axis, letter, fill)
        return value

    def _wide(self, value: Tensor, axis: int, letter: str, fill: int | None) -> Tensor:
        index = "TUP".index(letter)
        added = self.new[index] - self.old[index]
        if not added:
            return value
        return F.pad(value, (0, 0) * (value.dim() - axis - 1) + (0, added), value=0 if fill is None else fill)

    def moved(self, rows: Tensor, directions: int) -> Tensor:
        """(n,) positions of targets among the hidden states of the wider rows."""
        (old, _, old_stream), (new, _, new_stream) = self.old, self.new
        example, state = rows // ((old + old_stream) * directions), rows % ((old + old_stream) * directions)
        position, direction = state // directions, state % directions
        position = position + (position >= old) * (new - old)  # a second stream stands after the padding
        return (example * (new + new_stream) + position) * directions + direction
