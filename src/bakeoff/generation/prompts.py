"""Batches of prompts, and their tensors. Shapes: B rows, T length."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bakeoff.lengths import by_length, padded
from bakeoff.row import Source

POSITIONS = 1 << 14
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
    own = np.array([len(prompt) for prompt in prompts], np.int64)
    lengths = own + np.array([len(sources[row]) if sources else 0 for row in range(len(prompts))], np.int64)
    chosen: list[int] = []
    for row in by_length(lengths, own).tolist():
        full = len(chosen) >= most or (len(chosen) + 1) * beams * (lengths[row] + tokens) > POSITIONS
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


def source_of(sources: Prompts | None, device: torch.device) -> Source[Tensor] | None:
    """The source of a batch, with padding after the tokens; None: there is no encoder."""
    if sources is None:
        return None
    return Source(*padded(sources, 0, device))
