"""What every way to score texts has in common: log-probabilities of tokens behind hidden states, in batches.

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
"""Tokens, padding included, that go through the model at once, at most."""

SCORES = 1 << 24
"""Scores of a token that are held at once: 64 MB in float32."""


class ScoredText(NamedTuple):
    """A text as it is scored."""

    ids: NDArray[np.int64]
    """(T,) its tokens."""
    first: int = 0
    """The first of them that is scored."""
    source: NDArray[np.int64] | None = None
    """(U,) the tokens of its source, for sequence-to-sequence models."""
    starts: NDArray[np.bool_] | None = None
    """(T,) which of its tokens start a word; None: each does."""


class TokenScores:
    """The log-probabilities of a row's scored tokens in nats, and, if asked for, which are the likeliest of all."""

    def __init__(self, count: int) -> None:
        self.log_probabilities = np.zeros(count)
        self.likeliest = np.zeros(count, bool)


class Scorer(Protocol):
    """A way to score texts."""

    def score(self, rows: Sequence[ScoredText]) -> list[TokenScores]:
        """Each row's scores, in the order of the rows; a row's do not depend on the others."""
        ...


class TokenPredictions:
    """The head's log-probabilities.

    Args:
        module: the model with its heads, in evaluation mode.
        head: the head that scores tokens.
        banned: tokens that are never the likeliest; None: nobody asks which token is.
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
        """Score some tokens and note what was found.

        Args:
            hidden: (N, D) the states behind which they are predicted.
            labels: (N,) the tokens.
            owners: where the scores belong, in the order of the rows: the first place, and the number of places.
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
    """The places of each batch's rows: rows of similar length together, as many tokens as suit the device."""
    return [batch.tolist() for batch in sorted_batches(np.asarray(lengths), tokens_at_once(device, PLACES))]


def padded(rows: Sequence[NDArray[np.int64]], pad: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """(B, T) ids of rows, padded at their ends, and True where there is a token; None where there is no padding."""
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), int(lengths.max())), pad, np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    real = np.arange(ids.shape[1]) < lengths[:, None]
    return torch.from_numpy(ids).to(device), None if real.all() else torch.from_numpy(real).to(device)
