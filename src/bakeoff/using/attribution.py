"""Integrated gradients: the contribution of each token of a text to the class that a classifier predicts.

Sundararajan, Taly and Yan 2017, arXiv:1703.01365, equation 1: the weight of input i is (x_i - x'_i) times the integral
of dF(x' + a (x - x')) / dx_i over a from 0 to 1. Here F is the log-probability of the predicted class, x the input of
the first layer, and x' the same for a row in which padding replaces the tokens of the text. The weight of a token is
the sum over the elements of its vector.

Shapes: W windows of a text, T length, D width, C classes.
"""

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bakeoff.row import Row
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.rows.batches import collate

POINTS = (32, 64, 128, 256)
"""Numbers of points of the Gauss-Legendre quadrature, tried in turn until the sum of weights is within TOLERANCE."""

TOLERANCE = 1e-3
"""Largest error of the sum of weights: in nats, or as a share of the exact sum if that exceeds 1 nat."""


class TokenWeight(NamedTuple):
    """A token, and its contribution to the class."""

    token: str
    """The characters of the text that the token covers."""
    side: int
    """0: a token of the text; 1: a token of the second text of a pair."""
    begin: int
    """The index of the token's first character in that text."""
    end: int
    """The index after the token's last character."""
    weight: float
    """The contribution in nats: above 0 for the class, below 0 against it; 0 if the token was cut off."""


class TokenWeights(NamedTuple):
    """The prediction of a classifier for a text, and the contribution of each token."""

    label: str
    """The predicted class."""
    probability: float
    """The probability of the class."""
    baseline: float
    """The probability of the class if padding replaces every token of the text. The weights add up to
    log(probability / baseline)."""
    weights: list[TokenWeight]
    """The weights of the tokens of the text, then of the second text."""


def weights_of_tokens(run: FinetunedRun, head: HeadedModel, text: str, pair: str | None) -> TokenWeights:
    """The contribution of each token of a text, or of a pair, to the predicted class; see `LoadedRun`."""
    format = run.format()
    rows = format.placed(text, pair)
    batch = collate(rows.encoded, np.arange(len(rows.encoded.ids)), format).to(head.model.device)
    of_text = torch.zeros_like(batch.ids, dtype=torch.bool)
    for window, positions in enumerate(rows.positions):
        of_text[window, [position for position, _, _ in positions]] = True
    scored = _Scored(head, batch)
    probabilities, embedded = scored.recorded(batch.ids)
    without_text, baseline = scored.recorded(torch.where(of_text, format.pad, batch.ids))
    label = int(probabilities.argmax())
    gap = math.log(probabilities[label]) - math.log(without_text[label])
    for points in POINTS:
        weights = scored.integrated(embedded, baseline, label, points)  # (W, T)
        if abs(float(weights.sum()) - gap) <= TOLERANCE * max(1.0, abs(gap)):
            break
    of_sides = [np.zeros(len(side.ids)) for side in rows.sides]
    for window, positions in enumerate(rows.positions):
        for position, number, token in positions:
            of_sides[number][token] += float(weights[window, position])
    texts = [text] if pair is None else [text, pair]
    return TokenWeights(
        run.learned.classes[label],
        float(probabilities[label]),
        float(without_text[label]),
        [
            TokenWeight(texts[number][begin:end], number, begin, end, weight)
            for number, (side, values) in enumerate(zip(rows.sides, of_sides, strict=True))
            for begin, end, weight in zip(side.begin.tolist(), side.end.tolist(), values.tolist(), strict=True)
        ],
    )


class _Scored:
    """A classifier whose embeddings are recorded, and can be replaced.

    Args:
        head: a classifier. A copy that shares its weights is changed, so that other threads can use the head meanwhile.
        batch: the windows of a text.
    """

    def __init__(self, head: HeadedModel, batch: Row[Tensor]) -> None:
        tensors = [*head.parameters(), *head.buffers()]
        self._head = copy.deepcopy(head, {id(tensor): tensor for tensor in tensors})
        self._batch = batch
        self._replaced: list[Tensor] | None = None
        self._seen: list[Tensor] = []
        model = self._head.model
        for part in {model.embedding, model.target_embedding or model.embedding}:
            part.register_forward_hook(self._embedded)

    def _embedded(self, part: Any, inputs: Any, vectors: Tensor) -> Tensor:
        self._seen.append(vectors)
        return vectors if self._replaced is None else self._replaced[len(self._seen) - 1]

    def _log_probabilities(self, ids: Tensor) -> Tensor:
        """(C,) log of the mean probability over windows."""
        self._seen = []
        scores: Tensor = self._head(self._batch._replace(ids=ids)).double().log_softmax(-1)  # (W, C)
        return scores.logsumexp(0) - math.log(len(scores))

    @torch.no_grad()
    def recorded(self, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
        """(C,) probabilities for (W, T) ids, and the output (W, T or less, D) of each embedding."""
        self._replaced = None
        return self._log_probabilities(ids).exp(), list(self._seen)

    def integrated(self, embedded: list[Tensor], baseline: list[Tensor], label: int, count: int) -> Tensor:
        """(W, T) contribution of each position to a class.

        Args:
            embedded: the outputs of the embeddings for the row.
            baseline: their outputs for the row without its text.
            label: the index of the class.
            count: points of the quadrature.
        """
        points, shares = np.polynomial.legendre.leggauss(count)
        total = torch.zeros(self._batch.ids.shape, dtype=torch.float64, device=self._batch.ids.device)
        for point, share in zip((points + 1) / 2, shares / 2, strict=True):
            pairs = list(zip(embedded, baseline, strict=True))
            self._replaced = [(zero + point * (one - zero)).requires_grad_() for one, zero in pairs]
            with torch.enable_grad():
                gradients = torch.autograd.grad(self._log_probabilities(self._batch.ids)[label], self._replaced)
            for (one, zero), gradient in zip(pairs, gradients, strict=True):
                # A source lacks the row's first token.
                contribution = share * ((one - zero) * gradient).double().sum(-1)
                total[:, total.shape[1] - contribution.shape[1] :] += contribution
        return total
