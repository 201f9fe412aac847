"""Common parts of all scorers: log-probabilities of tokens from hidden states, in batches.

Shapes: B rows, T length, D width, V vocabulary, N gathered rows.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.batching.by_length import sorted_batches
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.heads import Head
from bakeoff.resources.device import tokens_at_once

PLACES = 8192
"""Largest number of tokens in a batch, padding included; on a CPU there are fewer, see `tokens_at_once`."""

SCORES = 1 << 24
"""Largest number of scores held at once: 64 MB in float32."""


class ScoredText(NamedTuple):
    """The tokens of a text to be scored."""

    ids: NDArray[np.int64]
    """(T,) tokens of the text."""
    first: int = 0
    """The position of the first scored token."""
    source: NDArray[np.int64] | None = None
    """(U,) tokens of the source, for sequence-to-sequence models."""
    starts: NDArray[np.bool_] | None = None
    """(T,) True for tokens that start a word; None: each does."""


class TokenScores:
    """Log-probabilities of a row's scored tokens in nats, and, if asked for, whether each token is the likeliest."""

    def __init__(self, count: int) -> None:
        self.log_probabilities = np.zeros(count)
        self.likeliest = np.zeros(count, bool)


class Scorer(Protocol):
    """A way to score texts."""

    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """The scores of each row, in the order of rows; they do not depend on the other rows."""
        ...


class TokenPredictions:
    """Log-probabilities of tokens by a head.

    Args:
        module: the model with its heads, in evaluation mode.
        head: the head that predicts tokens.
        banned: tokens that do not count as the likeliest; None: do not find likeliest tokens.
    """

    def __init__(self, module: PretrainingModel, head: Head, banned: Sequence[int] | None) -> None:
        self.head, self.table = head, module.model.embedding.table
        self.banned = None if banned is None else torch.tensor(banned, dtype=torch.int64, device=self.table.device)
        self.rows_at_once = max(1, SCORES // len(self.table))

    def write(
        self,
        hidden: Tensor,
        labels: Tensor,
        owners: Sequence[tuple[TokenScores, int, int]],
    ) -> None:
        """Score tokens, and write the scores to their owners.

        Args:
            hidden: (N, D) states that predict the tokens.
            labels: (N,) tokens.
            owners: the scores to write to, in the order of `labels`, with the first index and the number of tokens.
        """
        log_probabilities, likeliest = [], []
        for states, right in zip(hidden.split(self.rows_at_once), labels.split(self.rows_at_once), strict=True):
            scores = self.head.log_probabilities(states, self.table)  # (N, V)
            own = scores.gather(1, right[:, None])[:, 0]
            log_probabilities.append(own.double().cpu())
            if self.banned is not None:
                best = scores.index_fill(1, self.banned, float("-inf")).argmax(1)
                likeliest.append((best == right).cpu())
        values = torch.cat(log_probabilities).numpy()
        hits = torch.cat(likeliest).numpy() if likeliest else np.zeros(len(values), bool)
        done = 0
        for scores_of, first, count in owners:
            scores_of.log_probabilities[first : first + count] = values[done : done + count]
            scores_of.likeliest[first : first + count] = hits[done : done + count]
            done += count


def batches(lengths: Sequence[int] | NDArray[np.int64], device: torch.device) -> list[list[int]]:
    """The indices of rows in each batch: rows of similar length, with as many tokens as suit the device."""
    return [batch.tolist() for batch in sorted_batches(np.asarray(lengths), tokens_at_once(device, PLACES))]


def padded(rows: Sequence[NDArray[np.int64]], pad: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """(B, T) ids of rows with padding behind, and their (B, T) padding mask; None: there is no padding."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), pad, np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    real = np.arange(ids.shape[1]) < lengths[:, None]
    return torch.from_numpy(ids).to(device), None if real.all() else torch.from_numpy(real).to(device)
