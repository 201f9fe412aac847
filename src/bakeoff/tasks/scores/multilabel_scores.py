"""Scores of texts with any number of labels, and the contribution of each text to the scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.scores.jackknife import Vector, of_areas, of_ratios, of_sums


def multilabel_scores(
    true: NDArray[np.bool_], probabilities: NDArray[np.float32], threshold: float
) -> dict[str, float]:
    """micro_f1, macro_f1, exact and auc of (N, C) labels and (N, C) probabilities, as fractions.

    micro_f1 is the F1 of all labels of all rows together. macro_f1 is the mean of the F1 of each label, 0 for a label
    that neither occurs nor is predicted. exact is the share of rows all of whose labels are right. auc is the mean of
    the areas under the ROC curves of the labels that some rows have and others lack, 0.5 where there is no such label.

    Args:
        true: (N, C) whether each row has each label.
        probabilities: (N, C) the probability of each label.
        threshold: the least probability at which a label counts as predicted.
    """
    from sklearn.metrics import roc_auc_score

    assert true.shape == probabilities.shape
    predicted = probabilities >= threshold
    right = (true & predicted).sum(0)
    counted = true.sum(0) + predicted.sum(0)
    judged = [column for column in range(true.shape[1]) if 0 < true[:, column].sum() < len(true)]
    areas = [float(roc_auc_score(true[:, column], probabilities[:, column])) for column in judged]
    scores = {
        "micro_f1": 2 * right.sum() / max(1, counted.sum()),
        "macro_f1": float(np.mean(2 * right / np.maximum(1, counted))),
        "exact": float((true == predicted).all(1).mean()),
        "auc": float(np.mean(areas)) if areas else 0.5,
    }
    return {name: round(float(value), 7) for name, value in scores.items()}


def multilabel_contributions(lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
    """(N,) contributions of N lines of predictions.jsonl to a metric (`bakeoff.tasks.scores.jackknife`)."""
    true, predicted = ([set(line[side]) for line in lines] for side in ("label", "prediction"))
    if metric == "exact":
        return np.array([one == other for one, other in zip(true, predicted, strict=True)], np.float64)
    # A label that train lacks has no probability.
    names = sorted({*lines[0]["probabilities"], *(name for row in true for name in row)}) if lines else []
    if metric == "auc":
        scores = np.array([[row["probabilities"].get(name, 0.0) for name in names] for row in lines], np.float64)
        return of_areas(np.array([[name in row for name in names] for row in true]), scores)
    wanted, guessed = (np.array([[name in row for name in names] for row in side]) for side in (true, predicted))
    right, counted = 2.0 * (wanted & guessed), wanted.astype(np.float64) + guessed
    if metric == "micro_f1":
        return of_ratios(right.sum(1), counted.sum(1))
    return of_sums(np.concatenate([right, counted], 1), _mean_ratio)


def _mean_ratio(sums: Vector) -> Vector:
    """(...) the mean of C ratios, from (..., 2 C) numerators and denominators; 0 where a denominator is 0."""
    parts, wholes = np.split(sums, 2, axis=-1)
    return np.asarray((parts / np.maximum(wholes, 1)).mean(-1))
