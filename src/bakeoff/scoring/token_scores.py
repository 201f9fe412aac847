"""Common parts of all scorers: log-probabilities of tokens, in batches.

Shapes: B rows, T length, D width, V vocabulary, N gathered rows.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.batching.by_length import sorted_batches
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.resources.device import tokens_at_once
from bakeoff.row import Row
from bakeoff.signals import go_on

POSITIONS = 8192
"""Largest number of tokens in a batch, padding included; on a CPU there are fewer, see `tokens_at_once`."""

SCORES = 1 << 24
"""Largest number of scores held at once: 64 MB in float32."""


Chosen = TypeVar("Chosen")


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
    """Log-probabilities of tokens by the head of an objective.

    Args:
        module: the model with its heads, in evaluation mode.
        objective: the name of the objective whose head predicts tokens.
        banned: tokens that do not count as the likeliest; None: do not find likeliest tokens.
        processes: those that score the same texts together, each its share of the batches.
    """

    def __init__(
        self,
        module: PretrainingModel,
        objective: str,
        banned: Sequence[int] | None,
        processes: Processes = ALONE,
    ) -> None:
        self.module, self.objective, self.processes = module, objective, processes
        device = module.model.device
        self.banned = None if banned is None else torch.tensor(banned, dtype=torch.int64, device=device)

    def write(
        self,
        row: Row[Tensor],
        positions: Tensor,
        labels: Tensor,
        owners: Sequence[tuple[TokenScores, int, int]],
        state: ModelState | None = None,
    ) -> ModelState | None:
        """Score tokens, and write the scores to their owners.

        Args:
            row: rows of tokens.
            positions: (N,) positions of the states that predict the tokens, among all states of the rows.
            labels: (N,) tokens.
            owners: the scores to write to, in the order of `labels`, with the first index and the number of tokens.
            state: the state from which the rows continue, if they do.

        Returns:
            The state after the rows.
        """
        go_on()
        scored, after = self.module(Batch(row, {self.objective: (positions, labels)}), state, self._score)
        values, hits = scored[self.objective]
        done = 0
        for scores_of, first, count in owners:
            scores_of.log_probabilities[first : first + count] = values[done : done + count]
            scores_of.likeliest[first : first + count] = hits[done : done + count]
            done += count
        return cast(ModelState | None, after)

    def share(self, batches: Sequence[Chosen]) -> Sequence[Chosen]:
        """The batches of this process among all, whose shapes do not depend on the number of processes."""
        return batches[self.processes.rank :: self.processes.size]

    def joined(self, scores: list[TokenScores]) -> list[TokenScores]:
        """The scores of all processes, of which each has written those of its share, and the others are 0."""
        if self.processes.alone or not scores:
            return scores
        values = np.concatenate([each.log_probabilities for each in scores])
        hits = np.concatenate([each.likeliest for each in scores]).astype(np.int64)
        self.processes.sum([torch.from_numpy(values), torch.from_numpy(hits)])
        first = 0
        for each in scores:
            until = first + len(each.likeliest)
            each.log_probabilities, each.likeliest = values[first:until], hits[first:until] > 0
            first = until
        return scores

    def _score(
        self, head: Head, rows: Tensor, labels: Tensor, table: Tensor
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(N,) the log-probability of each label, and whether it is the likeliest."""
        log_probabilities, likeliest = [], []
        count = max(1, SCORES // len(table))
        for states, right in zip(rows.split(count), labels.split(count), strict=True):
            scores = head.log_probabilities(states, table)  # (N, V)
            own = scores.gather(1, right[:, None])[:, 0]
            log_probabilities.append(own.double().cpu())
            if self.banned is not None:
                best = scores.index_fill(1, self.banned, float("-inf")).argmax(1)
                likeliest.append((best == right).cpu())
        values = torch.cat(log_probabilities).numpy()
        return values, torch.cat(likeliest).numpy() if likeliest else np.zeros(len(values), bool)


def batches(lengths: Sequence[int] | NDArray[np.int64], device: torch.device) -> list[list[int]]:
    """The indices of rows in each batch: rows of similar length, with as many tokens as suit the device."""
    return [batch.tolist() for batch in sorted_batches(np.asarray(lengths), tokens_at_once(device, POSITIONS))]
