"""Batches of prompts, and their tensors. Shapes: B rows, T length."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from bakeoff.models.inputs import Source

PLACES = 1 << 14
"""Largest number of tokens in a batch, including the tokens to be written."""

Prompts = Sequence[Sequence[int]]
"""The token ids of each prompt."""


def together(
    prompts: Prompts, sources: Prompts | None, tokens: int, most: int, beams: int = 1, alike: bool = False
) -> Iterator[list[int]]:
    """The indices of prompts, in batches of similar length.

    Args:
        prompts: token ids, at least one id each.
        sources: the ids that the encoder reads for each prompt; None: there is no encoder.
        tokens: the number of tokens to be written.
        most: the largest number of prompts in a batch.
        beams: rows of each prompt.
        alike: whether the prompts of a batch must have the same length.
    """
    lengths = [len(prompt) + (len(sources[row]) if sources else 0) for row, prompt in enumerate(prompts)]
    order = sorted(range(len(prompts)), key=lambda row: (lengths[row], len(prompts[row])))
    chosen: list[int] = []
    for row in order:
        full = len(chosen) >= most or (len(chosen) + 1) * beams * (lengths[row] + tokens) > PLACES
        other = alike and chosen and len(prompts[row]) != len(prompts[chosen[0]])
        if chosen and (full or other):
            yield chosen
            chosen = []
        chosen.append(row)
    if chosen:
        yield chosen


def ids_of(rows: Prompts | Sequence[int], device: torch.device) -> Tensor:
    """A tensor of ids: (B, T) for rows of one length, (B,) for numbers."""
    return torch.tensor(rows, dtype=torch.int64, device=device)


def padded_before(rows: Prompts, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """(B, T) ids of rows aligned at their ends, and their (B, T) padding mask; None: there is no padding."""
    longest = max(map(len, rows))
    ids = ids_of([[0] * (longest - len(row)) + list(row) for row in rows], device)
    gaps = ids_of([[longest - len(row)] for row in rows], device)
    real = torch.arange(longest, device=device) >= gaps
    return ids, None if min(map(len, rows)) == longest else real


def source_of(sources: Prompts | None, device: torch.device) -> Source | None:
    """The source of a batch, with padding behind the tokens; None: there is no encoder."""
    if sources is None:
        return None
    longest = max(map(len, sources))
    real = torch.tensor([[place < len(row) for place in range(longest)] for row in sources])
    ids = ids_of([[*row, *[0] * (longest - len(row))] for row in sources], device)
    return Source(ids, None if bool(real.all()) else real.to(device))
