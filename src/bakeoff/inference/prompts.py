"""Prompts as rows of one batch: which of them go on together, and their tensors. Shapes: B rows, T length."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from bakeoff.models.inputs import Source

PLACES = 1 << 14
"""Tokens, those to be written included, that are held at once."""

Prompts = Sequence[Sequence[int]]
"""The ids of each."""


def together(
    prompts: Prompts, sources: Prompts | None, tokens: int, most: int, beams: int = 1, alike: bool = False
) -> Iterator[list[int]]:
    """The places of prompts that go on together: those of similar length that fit.

    Args:
        prompts: at least one id each.
        sources: what each row's encoder reads, where there is one.
        tokens: how many are to be written.
        most: the most rows at once.
        beams: rows of each prompt.
        alike: those that go on together are of one length.
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
    """(B, T) the ids of rows of one length, or (B,) numbers."""
    return torch.tensor(rows, dtype=torch.int64, device=device)


def padded_before(rows: Prompts, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """(B, T) ids of rows that end together, and True where there is one; None where they begin together, too."""
    longest = max(map(len, rows))
    ids = ids_of([[0] * (longest - len(row)) + list(row) for row in rows], device)
    gaps = ids_of([[longest - len(row)] for row in rows], device)
    real = torch.arange(longest, device=device) >= gaps
    return ids, None if min(map(len, rows)) == longest else real


def source_of(sources: Prompts | None, device: torch.device) -> Source | None:
    """What the encoder reads, padded behind."""
    if sources is None:
        return None
    longest = max(map(len, sources))
    real = torch.tensor([[place < len(row) for place in range(longest)] for row in sources])
    ids = ids_of([[*row, *[0] * (longest - len(row))] for row in sources], device)
    return Source(ids, None if bool(real.all()) else real.to(device))
