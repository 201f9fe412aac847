"""Batches of token ids from a caller. Shapes: N rows, B rows of a batch, T length, S length of a batch, K outputs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.lengths import padded
from bakeoff.models.model import Model, ModelConfig
from bakeoff.resources.device import Placement
from bakeoff.row import Row, Source
from bakeoff.scoring.token_scores import batches

Ids = Tensor | NDArray[Any] | Sequence[Sequence[int]]
"""(N, T) token ids, or N lists of any lengths."""


def lists_of(ids: Ids, what: str = "ids") -> list[NDArray[np.int64]]:
    """The N rows of ids as (T,) arrays; rows of arrays keep their padding. `what` names the argument in errors.

    Raises:
        UserError: the ids are no rows of whole numbers, or a row is empty.
    """
    try:
        if isinstance(ids, Tensor):
            ids = ids.detach().cpu().numpy()
        rows = [np.asarray(row.cpu() if isinstance(row, Tensor) else row) for row in ids]
    except (TypeError, ValueError):
        raise UserError(f"{what}: give an array of (rows, tokens), or a list of lists of token ids") from None
    for number, row in enumerate(rows, 1):
        if row.ndim != 1 or not len(row) or row.dtype.kind not in "iu":
            raise UserError(f"{what}: row {number}: give at least one token id a row, whole numbers")
    return [row.astype(np.int64) for row in rows]


def unpadded_lengths(rows: Sequence[NDArray[np.int64]], pad: int) -> list[int]:
    """The length of each row without the padding at its end, but at least 1."""
    lengths = []
    for row in rows:
        tokens = np.flatnonzero(row != pad)
        lengths.append(int(tokens[-1]) + 1 if len(tokens) else 1)
    return lengths


def in_batches(
    rows: Sequence[NDArray[np.int64]],
    lengths: Sequence[int],
    device: torch.device,
    read: Callable[[list[int]], Tensor],
) -> Tensor:
    """(N, T, K) outputs of `read` for rows, computed in batches of similar length; zeros at padding.

    Args:
        rows: N rows of at most T tokens.
        lengths: (N,) lengths of the rows without padding.
        device: the device, which decides the size of batches.
        read: a function from the indices of B rows to their (B, S, K) outputs, S being the longest of these rows.
    """
    outputs: Tensor | None = None
    longest = max(map(len, rows))
    for chosen in batches(lengths, device):
        part = read(chosen)
        if outputs is None:
            outputs = part.new_zeros(len(rows), longest, part.shape[-1])
        for index, row in enumerate(chosen):
            outputs[row, : lengths[row]] = part[index, : lengths[row]]
    assert outputs is not None
    return outputs


class IdReader:
    """A reader of rows of token ids with a model, in batches of similar length.

    Args:
        model: the model, in evaluation mode.
        config: its config.
        pad: the id of padding.
        placement: the device of the model, and the precision of its products.
    """

    def __init__(self, model: Model, config: ModelConfig, pad: int, placement: Placement) -> None:
        self.model, self.config, self.pad = model, config, pad
        self.placement, self.device = placement, placement.device

    @torch.inference_mode()
    def read(
        self, ids: Ids, segments: Ids | None, read: Callable[[Row[Tensor]], Tensor], source: Ids | None = None
    ) -> Tensor:
        """(N, T, K) outputs of `read` for rows of ids, computed in batches; zeros at padding.

        Args:
            ids: N rows; the id of padding at the end of an array's row is padding.
            segments: the segment of each token; None: 0 everywhere.
            read: a function from B rows to their (B, S, K) outputs.
            source: for a sequence-to-sequence model the rows that its encoder reads.

        Raises:
            UserError: ids are outside of the vocabulary or more than the model's positions, or rows, segments and
                sources do not fit each other.
        """
        sources = None if source is None else self._checked(source, "source")
        rows = self._checked(ids, "ids")
        is_array = isinstance(ids, Tensor | np.ndarray)
        lengths = unpadded_lengths(rows, self.pad) if is_array else [len(row) for row in rows]
        numbers = None if segments is None else lists_of(segments, "segments")
        for what, others in (("segments", numbers), ("source", sources)):
            if others is not None and len(others) != len(rows):
                raise UserError(f"{what}: {counted(len(others), 'row')} for {len(rows):,} of ids")
        if numbers is not None:
            self._require_segments(rows, numbers)
        source_lengths = None if sources is None else unpadded_lengths(sources, self.pad)

        def batch(chosen: list[int]) -> Tensor:
            tokens, padding_mask = padded([rows[row][: lengths[row]] for row in chosen], self.pad, self.device)
            segment_ids = None
            if numbers is not None:
                segment_ids, _ = padded([numbers[row][: lengths[row]] for row in chosen], 0, self.device)
            source_rows = None
            if sources is not None and source_lengths is not None:
                chosen_sources = [sources[row][: source_lengths[row]] for row in chosen]
                source_rows = Source(*padded(chosen_sources, self.pad, self.device))
            # Padding stands after the tokens, to which a causal model does not attend; ids alone are for an encoder.
            forwards = self.config.causal and (source_rows is not None or not self.config.sequence_to_sequence)
            with self.placement.autocast():
                return read(Row(tokens, segment_ids, None if forwards else padding_mask, source=source_rows))

        return in_batches(rows, lengths, self.device, batch)

    def _checked(self, ids: Ids, what: str) -> list[NDArray[np.int64]]:
        """The rows of ids, checked against the vocabulary and the model's positions."""
        rows = lists_of(ids, what)
        size, longest = self.model.vocabulary, self.config.longest_input
        for number, row in enumerate(rows, 1):
            if row.min() < 0 or row.max() >= size:
                wrong = int(row.min() if row.min() < 0 else row.max())
                raise UserError(f"{what}: row {number}: there is no token {wrong}; the vocabulary has {size:,}")
            if longest is not None and len(row) > longest:
                raise UserError(f"{what}: row {number}: {len(row):,} tokens; the model has {longest:,} positions")
        if not rows:
            raise UserError(f"{what}: give at least one row")
        return rows

    def _require_segments(self, rows: Sequence[NDArray[np.int64]], numbers: Sequence[NDArray[np.int64]]) -> None:
        """Refuse segments of another shape than the rows, and segments that the model does not have."""
        reads_segments = any(mixer.reads_segments for mixer in self.config.mixers)
        known = self.config.embedding.segments or (3 if reads_segments else 1)
        for number, (row, segments) in enumerate(zip(rows, numbers, strict=True), 1):
            if len(row) != len(segments):
                raise UserError(f"segments: row {number}: {len(segments)} segments for {len(row)} tokens")
            if segments.min() < 0 or segments.max() >= known:
                raise UserError(
                    f"segments: row {number}: {int(segments.max())}; the model tells {known} apart, 0 the first"
                )
