"""Integrated gradients: how much each token of a text speaks for the class that a classifier predicts.

Sundararajan, Taly and Yan 2017, arXiv:1703.01365, equation 1: the weight of input i is
(x_i - x'_i) times the integral over a from 0 to 1 of dF(x' + a (x - x')) / dx_i. Here F is the log-probability of the
predicted class, x the vectors that come into the first layer, and x' those of the same row with padding in the place of
each token of the text; a token's weight is the sum over its vector.

Shapes: W windows of a text, T length, D width, C classes.
"""

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.rows.batches import InputBatch, collate

POINTS = (32, 64, 128, 256)
"""Points on the way at which the gradient is taken, those of Gauss and Legendre: so many more as it takes."""

TOLERANCE = 1e-3
"""How far from what they should add up to the weights may be, in nats, or as a share where that is more than one."""


class TokenWeight(NamedTuple):
    """A token, and how much it speaks for the class."""

    token: str
    """The characters of the text that it stands for."""
    side: int
    """0: it is one of the text, 1: of the pair."""
    begin: int
    """The character of that text, as it was given, at which it begins."""
    end: int
    """The character behind it."""
    weight: float
    """In nats; above 0 it speaks for the class, below 0 against it. 0 where the token was cut off."""


class TokenWeights(NamedTuple):
    """What a classifier says of a text, and how much each token has to do with it."""

    label: str
    """The class that is predicted."""
    probability: float
    """Its probability."""
    baseline: float
    """Its probability where every token of the text is padding: the weights add up to the log of the ratio of both."""
    weights: list[TokenWeight]
    """Of each token of the text, then of each of the pair."""


def weights_of_tokens(run: FinetunedRun, head: HeadedModel, text: str, pair: str | None) -> TokenWeights:
    """The weight of each token of a text, or of a pair, for the class that is predicted; see `LoadedRun`."""
    format = run.format()
    rows = format.placed(text, pair)
    batch = collate(rows.encoded, np.arange(len(rows.encoded.ids)), format).to(head.model.embedding.table.device)
    of_text = torch.zeros_like(batch.ids, dtype=torch.bool)
    for window, places in enumerate(rows.places):
        of_text[window, [place for place, _, _ in places]] = True
    scored = _Scored(head, batch)
    probabilities, found = scored.recorded(batch.ids)
    without_text, baseline = scored.recorded(torch.where(of_text, format.pad, batch.ids))
    label = int(probabilities.argmax())
    gap = math.log(probabilities[label]) - math.log(without_text[label])
    for points in POINTS:
        weights = scored.integrated(found, baseline, label, points)  # (W, T)
        if abs(float(weights.sum()) - gap) <= TOLERANCE * max(1.0, abs(gap)):
            break
    of_sides = [np.zeros(len(side.ids)) for side in rows.sides]
    for window, places in enumerate(rows.places):
        for place, number, token in places:
            of_sides[number][token] += float(weights[window, place])
    given = [text] if pair is None else [text, pair]
    return TokenWeights(
        run.learned.classes[label],
        float(probabilities[label]),
        float(without_text[label]),
        [
            TokenWeight(given[number][begin:end], number, begin, end, weight)
            for number, (side, own) in enumerate(zip(rows.sides, of_sides, strict=True))
            for begin, end, weight in zip(side.begin.tolist(), side.end.tolist(), own.tolist(), strict=True)
        ],
    )


class _Scored:
    """A head whose embeddings are listened to, and can be replaced.

    Args:
        head: a classifier; a copy that has its weights in common with it is what is changed, so that others may use
            it at the same time.
        batch: the windows of a text.
    """

    def __init__(self, head: HeadedModel, batch: InputBatch) -> None:
        tensors = [*head.parameters(), *head.buffers()]
        self._head = copy.deepcopy(head, {id(tensor): tensor for tensor in tensors})
        self._batch = batch
        self._replaced: list[Tensor] | None = None
        self._seen: list[Tensor] = []
        model = self._head.model
        for part in {model.embedding, model.target_embedding or model.embedding}:
            part.register_forward_hook(self._embedded)

    def _embedded(self, part: Any, given: Any, vectors: Tensor) -> Tensor:
        self._seen.append(vectors)
        return vectors if self._replaced is None else self._replaced[len(self._seen) - 1]

    def _log_probabilities(self, ids: Tensor) -> Tensor:
        """(C,) of the mean over windows."""
        self._seen = []
        scores: Tensor = self._head(self._batch._replace(ids=ids)).double().log_softmax(-1)  # (W, C)
        return scores.logsumexp(0) - math.log(len(scores))

    @torch.no_grad()
    def recorded(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        """(C,) probabilities, and each (W, T or less, D) vectors that an embedding has made of (W, T) ids."""
        self._replaced = None
        return self._log_probabilities(ids).exp(), list(self._seen)

    def integrated(self, found: list[Tensor], baseline: list[Tensor], label: int, count: int) -> Tensor:
        """(W, T) the weight of each place for a class.

        Args:
            found: what the embeddings make of the row.
            baseline: what they make of the row without its text.
            label: the class.
            count: points on the way.
        """
        points, shares = np.polynomial.legendre.leggauss(count)
        total = torch.zeros(self._batch.ids.shape, dtype=torch.float64, device=self._batch.ids.device)
        for point, share in zip((points + 1) / 2, shares / 2, strict=True):
            pairs = list(zip(found, baseline, strict=True))
            self._replaced = [(zero + point * (one - zero)).requires_grad_() for one, zero in pairs]
            with torch.enable_grad():
                gradients = torch.autograd.grad(self._log_probabilities(self._batch.ids)[label], self._replaced)
            for (one, zero), gradient in zip(pairs, gradients, strict=True):
                own = share * ((one - zero) * gradient).double().sum(-1)
                total[:, total.shape[1] - own.shape[1] :] += own  # sources begin behind the first token of the row
        return total
