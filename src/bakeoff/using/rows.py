"""Token ids of a caller as padded batches of rows of similar length. Shapes: N rows, B of a batch, T length."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.token_scores import batches

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
