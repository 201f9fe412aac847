"""Token ids of a caller as padded batches of rows of similar length. Shapes: N rows, B of a batch, T length."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.token_scores import batches
from bakeoff.models.inputs import Inputs, Source
from bakeoff.models.model import Model, ModelConfig

Ids = Tensor | NDArray[Any] | Sequence[Sequence[int]]
"""(N, T) token ids, or N lists of any lengths."""


def lists_of(ids: Ids, what: str = "ids") -> list[NDArray[np.int64]]:
    """N rows, (T,) each; padding is no part of lists, and stays a part of arrays.

    Raises:
        UserError: they are no rows of whole numbers.
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


def real_lengths(rows: Sequence[NDArray[np.int64]], pad: int) -> list[int]:
    """(N,) tokens of each row without the padding at its end; one that is nothing else has a token."""
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
    """(N, T, K) what is read of rows, those of similar length together; zeros where there is padding.

    Args:
        rows: N rows of T tokens at most.
        lengths: (N,) tokens of each that are not padding.
        device: where they are read.
        read: gives (B, S, K) for some rows, S being the most tokens that they have.
    """
    found: Tensor | None = None
    longest = max(map(len, rows))
    for chosen in batches(lengths, device):
        own = read(chosen)
        if found is None:
            found = own.new_zeros(len(rows), longest, own.shape[-1])
        for place, row in enumerate(chosen):
            found[row, : lengths[row]] = own[place, : lengths[row]]
    assert found is not None
    return found


def padded_ids(
    rows: Sequence[NDArray[np.int64]], lengths: Sequence[int], chosen: Sequence[int], pad: int, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """(B, S) some rows padded at their ends, and (B, S) True where there is a token; None where there is no padding."""
    width = max(lengths[row] for row in chosen)
    ids = np.full((len(chosen), width), pad, np.int64)
    for place, row in enumerate(chosen):
        ids[place, : lengths[row]] = rows[row][: lengths[row]]
    real = np.arange(width) < np.array([lengths[row] for row in chosen])[:, None]
    return torch.from_numpy(ids).to(device), None if real.all() else torch.from_numpy(real).to(device)


class IdReader:
    """What a model says of rows of token ids, those of similar length together.

    Args:
        model: the model, in evaluation mode.
        config: its config.
        pad: the id of padding.
        device: where the model is.
    """

    def __init__(self, model: Model, config: ModelConfig, pad: int, device: torch.device) -> None:
        self.model, self.config, self.pad, self.device = model, config, pad, device

    @torch.inference_mode()
    def read(
        self, ids: Ids, segments: Ids | None, read: Callable[[Inputs], Tensor], source: Ids | None = None
    ) -> Tensor:
        """(N, T, K) what is read of rows, in batches; zeros at padding.

        Args:
            ids: N rows; at the end of a row of an array the id of padding is padding.
            segments: the segment of each token; None: 0 everywhere.
            read: gives (B, S, K) for the inputs of some rows.
            source: for a sequence-to-sequence model what its encoder reads.

        Raises:
            UserError: ids that the model does not know, more than it has positions for, or rows, segments and sources
                that do not fit each other.
        """
        sources = None if source is None else self._checked(source, "source")
        rows = self._checked(ids, "ids")
        given = isinstance(ids, Tensor | np.ndarray)
        lengths = real_lengths(rows, self.pad) if given else [len(row) for row in rows]
        numbers = None if segments is None else lists_of(segments, "segments")
        for what, others in (("segments", numbers), ("source", sources)):
            if others is not None and len(others) != len(rows):
                raise UserError(f"{what}: {len(others)} rows for {len(rows)} of ids")
        if numbers is not None:
            self._require_segments(rows, numbers)
        source_lengths = None if sources is None else real_lengths(sources, self.pad)

        def batch(chosen: list[int]) -> Tensor:
            tokens, real = padded_ids(rows, lengths, chosen, self.pad, self.device)
            own = None if numbers is None else padded_ids(numbers, lengths, chosen, 0, self.device)[0]
            told = None
            if sources is not None and source_lengths is not None:
                told = Source(*padded_ids(sources, source_lengths, chosen, self.pad, self.device))
            # Padding stands behind the tokens, where nothing that reads forwards sees it.
            return read(Inputs(tokens, own, None if self.config.causal else real, source=told))

        return in_batches(rows, lengths, self.device, batch)

    def _checked(self, ids: Ids, what: str) -> list[NDArray[np.int64]]:
        """Rows whose ids the model knows, and positions too."""
        rows = lists_of(ids, what)
        size, longest = len(self.model.embedding.table), self.config.longest_input
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
        """Refuse segments of another shape, and those that the model has no vector for."""
        reads_segments = any(mixer.reads_segments for mixer in self.config.mixers)
        known = self.config.embedding.segments or (3 if reads_segments else 1)
        for number, (row, own) in enumerate(zip(rows, numbers, strict=True), 1):
            if len(row) != len(own):
                raise UserError(f"segments: row {number}: {len(own)} segments for {len(row)} tokens")
            if own.min() < 0 or own.max() >= known:
                raise UserError(f"segments: row {number}: {int(own.max())}; the model tells {known} apart, 0 the first")
