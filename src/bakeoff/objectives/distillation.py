"""Distillation: a head learns the probabilities that other models' heads give, beside the labels or in their place.

Shapes: N gathered rows, D model width, E embedding width, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.objectives.heads import Head, TokenHead, UntiedTokenHead
from bakeoff.ops.cross_entropy import cross_entropy
from bakeoff.ops.divergence import divergence
from bakeoff.ops.linear_cross_entropy import linear_loss, rows_at_once

CHUNKS = 2
"""The factor by which fewer rows' scores are made at once than without teachers, whose probabilities stand beside."""


class DistillationConfig(Config):
    """The teachers, and their share of the loss (Hinton et al. 2015, arXiv:1503.02531).

    At each predicted position it is (1 - weight) H(label, q) + weight T^2 KL(p_T || q_T), with q the student's
    probabilities, q_T those of its scores divided by T, and p_T the mean of the teachers' at the same T.
    """

    teachers: list[str] = Field(min_length=1)
    """Finished pre-trained runs, or checkpoints of runs, with the tokenizer of the corpus and an objective of the
    recipe. Objectives that they lack learn from their labels alone."""
    weight: float = Field(default=0.9, gt=0, le=1)
    """Share of the teachers' probabilities in the loss; 1: labels are not learned from. 0.9 was better than 0.5 where
    it was measured (docs/distill.md)."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """T, by which the scores of teachers and student are divided; above 1 improbable tokens count more."""

    @field_validator("teachers")
    @classmethod
    def _each_once(cls, teachers: list[str]) -> list[str]:
        """Refuse a run that is listed twice, whose share of the mean would be another than is meant."""
        for name in teachers:
            if teachers.count(name) > 1:
                raise ValueError(f"{name} is listed twice")
        return teachers


def require_each_once(runs: Sequence[Path]) -> None:
    """Refuse one run as two teachers, by whatever paths.

    Raises:
        UserError: a run is listed twice.
    """
    places = [run.resolve() for run in runs]
    for number, run in enumerate(runs):
        if places[number] in places[:number]:
            raise UserError(f"{run}: listed twice; its share of the mean would be another than is meant")


class Known(NamedTuple):
    """What a teacher knows of the rows of one objective."""

    head: Head
    """Its head."""
    rows: Tensor
    """(N, D) its hidden states at the targets."""
    embedding_weight: Tensor
    """(V, E) its table of tokens."""


def known(head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None) -> Known:
    """What a model knows of gathered rows: a `Score` for `PretrainingModel.forward`."""
    return Known(head, rows, table)


@torch.no_grad()
def taught_probabilities(teachers: Sequence[Known], temperature: float, at: slice) -> Tensor:
    """(n, V) the mean over teachers of softmax(z / T), of the rows in a chunk, in float32."""
    total: Tensor | None = None
    for head, rows, table in teachers:
        scores = head.scores(rows[at], table)
        each = (scores if temperature == 1 else scores.float() / temperature).softmax(-1, dtype=torch.float32)
        total = each if total is None else total.add_(each)
    assert total is not None
    return total.div_(len(teachers))


class Distilled:
    """The loss of one objective with teachers: a `Score` for `PretrainingModel.forward`.

    Args:
        config: the weight and the temperature.
        teachers: what the teachers know of the same rows.
    """

    def __init__(self, config: DistillationConfig, teachers: Sequence[Known]) -> None:
        self.config, self.teachers = config, teachers

    def __call__(
        self, head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """() the loss of (N, D) rows with their (N,) labels and (N,) weights, summed, in nats.

        Scores of student and teachers are made in chunks of rows, so that those of all rows never exist together.
        """

        def of_scores(scores: Tensor, at: slice) -> Tensor:
            share, temperature = self.config.weight, self.config.temperature
            taught = taught_probabilities(self.teachers, temperature, at)
            total = share * divergence(scores, taught, temperature, None if weights is None else weights[at])
            if share < 1:
                total = total + (1 - share) * _of_labels(
                    head, scores, labels[at], None if weights is None else weights[at]
                )
            return total

        size = max(1, rows_at_once(len(table)) // CHUNKS)
        if isinstance(head, TokenHead):
            return linear_loss(head.vectors(rows), table, head.bias, of_scores, size)
        if isinstance(head, UntiedTokenHead):
            return linear_loss(rows, head.output.weight, head.output.bias, of_scores, size)

        def of_rows(some: Tensor, at: slice) -> Tensor:
            return of_scores(head.scores(some, table).float(), at)

        chunks = [slice(begin, begin + size) for begin in range(0, len(rows), size)]
        if len(chunks) == 1:
            return of_rows(rows, chunks[0])
        losses: list[Tensor] = [checkpoint(of_rows, rows[at], at, use_reentrant=False) for at in chunks]
        return torch.stack(losses).sum() if losses else rows.sum() * 0


def _of_labels(head: Head, scores: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The summed loss of a head's scores with labels, as it is without teachers."""
    if weights is None:
        return cross_entropy(scores, labels, getattr(head, "label_smoothing", 0.0), head.z_loss)
    losses = F.cross_entropy(scores, labels, reduction="none") + head.z_loss * scores.logsumexp(-1).square()
    return (losses * weights).sum()
