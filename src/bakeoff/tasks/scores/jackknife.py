"""Contributions of the test examples to a metric, from which the noise of a finite test set is estimated.

Jackknife pseudo-values: n * metric(all) - (n - 1) * metric(all but i), one for each of the n examples, moved together
so that their mean is metric(all); as they are it is the metric less its bias, which in a few rows is points of a macro
F1. For a metric that is a mean over examples, the pseudo-values are the averaged values. For other metrics, the
variance of the pseudo-values over n estimates the variance of the metric (Tukey 1958; used in the same way, for readers
and cases, by Dorfman, Berbaum and Metz 1992).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

MOST_PAIRS = 1_000_000
"""The most pairs of examples in memory at a time, where a metric compares all pairs."""


def pseudo_values(whole: float, without: Vector) -> Vector:
    """(n,) pseudo-values of a metric, whose mean is `whole`.

    Args:
        whole: the metric of all n examples.
        without: (n,) the metric without each of them.
    """
    return np.asarray(whole + (len(without) - 1) * (without.mean() - without), dtype=np.float64)


def of_sums(terms: Vector, value: Callable[[Vector], Vector]) -> Vector:
    """(n,) pseudo-values of a metric that is a function of sums over examples, such as the F1 of all spans; O(n).

    Args:
        terms: (n, K) what each example adds to each of K sums.
        value: the metric as a function of the sums, (..., K) -> (...).
    """
    total = terms.sum(0)
    return pseudo_values(float(value(total)), value(total - terms))


def of_ratios(parts: ArrayLike, wholes: ArrayLike) -> Vector:
    """(n,) pseudo-values of sum(parts) / sum(wholes), which is 0 where the sum of wholes is 0."""

    def ratio(sums: Vector) -> Vector:
        return np.asarray(np.where(sums[..., 1] > 0, sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], 1), 0.0))

    return of_sums(np.stack([np.asarray(parts, np.float64), np.asarray(wholes, np.float64)], 1), ratio)


def of_pearson(first: Sequence[float], second: Sequence[float]) -> Vector:
    """(n,) pseudo-values of Pearson's correlation of two lists of n numbers, 0 where either list is constant."""
    # Centred and scaled, so that the sums of squares are exact enough to be taken from each other.
    x, y = (_standard(np.asarray(side, np.float64)) for side in (first, second))
    return of_sums(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], 1), _correlation)


def of_spearman(first: Sequence[float], second: Sequence[float]) -> Vector:
    """(n,) pseudo-values of Spearman's correlation, of the ranks, of two lists of n numbers.

    Without an example, the ranks of greater numbers fall by one, and the ranks of equal numbers by a half. All pairs of
    examples are compared: O(n^2), about two seconds for 10,000 examples.
    """
    from scipy.stats import rankdata

    sides = [np.asarray(side, np.float64) for side in (first, second)]
    ranks = [rankdata(side) for side in sides]
    count = len(sides[0])
    step = max(1, MOST_PAIRS // count)
    without = []
    for begin in range(0, count, step):
        gone = np.arange(begin, min(count, begin + step))
        x, y = (_ranks_without(gone, *side) for side in zip(sides, ranks, strict=True))
        sums = [np.full(len(gone), count - 1.0), x.sum(1), y.sum(1), (x * x).sum(1), (y * y).sum(1), (x * y).sum(1)]
        without.append(_correlation(np.stack(sums, 1)))
    x, y = (side - side.mean() for side in ranks)
    whole = _correlation(np.array([count, 0.0, 0.0, x @ x, y @ y, x @ y]))
    return pseudo_values(float(whole), np.concatenate(without))


def of_areas(true: NDArray[np.bool_], scores: Vector) -> Vector:
    """(n,) pseudo-values of the mean area under the ROC curves of C labels, 0.5 where no label has an area.

    An area is a share of the pairs of an example with the label and one without it: the pairs in which the example with
    the label has the higher score, and half of the pairs with equal scores (Hanley and McNeil 1982). Leaving out an
    example leaves out its pairs.

    Args:
        true: (n, C) whether each example has each label; a label that all examples have, or none has, has no area.
        scores: (n, C) the score of each label for each example.
    """
    from scipy.stats import rankdata

    count, yes = len(true), true.sum(0)
    no = count - yes
    # The pairs that each example wins: its rank among all, without its rank among its kind.
    won = np.zeros(scores.shape)
    for label in range(true.shape[1]):
        has = true[:, label]
        ranks = rankdata(scores[:, label])
        for kind in (has, ~has):
            won[kind, label] = ranks[kind] - rankdata(scores[kind, label])
    # An example without the label adds to the area the pairs that it loses.
    terms = np.where(true, won, yes - won)
    total = np.where(true, won, 0.0).sum(0)
    left_yes, left_no = yes - true, no - ~true
    has_area = (left_yes > 0) & (left_no > 0)
    areas = np.where(has_area, (total - terms) / np.maximum(left_yes * left_no, 1), 0.0)
    judged = has_area.sum(1)
    without = np.where(judged > 0, areas.sum(1) / np.maximum(judged, 1), 0.5)
    all_judged = (yes > 0) & (no > 0)
    whole = (total / np.maximum(yes * no, 1))[all_judged].mean() if all_judged.any() else 0.5
    return pseudo_values(float(whole), without)


def _ranks_without(gone: NDArray[np.intp], values: Vector, ranks: Vector) -> Vector:
    """(len(gone), n) the ranks without each example of `gone`, minus their mean; 0 for the example left out."""
    removed = values[gone][:, None]
    remaining = ranks - (values > removed) - 0.5 * (values == removed) - len(values) / 2
    remaining[np.arange(len(gone)), gone] = 0.0
    return np.asarray(remaining)


def _standard(values: Vector) -> Vector:
    centred = values - values.mean()
    return np.asarray(centred / (np.abs(centred).max() or 1.0))


def _correlation(sums: Vector) -> Vector:
    """(...) Pearson's correlation from (..., 6) sums: of ones, x, y, x^2, y^2 and x y."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    n = np.maximum(n, 1)
    spread_x, spread_y = np.maximum(xx - x * x / n, 0), np.maximum(yy - y * y / n, 0)
    below = np.sqrt(spread_x * spread_y)
    # The spread of a constant side is not exactly 0 after rounding, and counts as 0.
    varies = (spread_x > 1e-12 * np.maximum(xx, 1e-300)) & (spread_y > 1e-12 * np.maximum(yy, 1e-300))
    return np.asarray(np.where(varies, (xy - x * y / n) / np.where(varies, below, 1), 0.0))


def of_classes(labels: Sequence[Any], predictions: Sequence[Any], metric: str) -> Vector:
    """(n,) pseudo-values of a classifier's accuracy, macro F1 or Matthews correlation, in the order of the examples.

    For accuracy a pseudo-value is exactly 1 for a right and 0 for a wrong answer. For the other metrics it is a closed
    form of the margins of the confusion matrix, so that the cost is O(n), whatever the number of classes.

    Args:
        labels: (n,) the true classes, by number or by name.
        predictions: (n,) the predicted classes.
        metric: accuracy, macro_f1 or matthews.
    """
    true, guessed = np.asarray(labels), np.asarray(predictions)
    if metric == "accuracy":
        return np.asarray(true == guessed, dtype=np.float64)
    names, codes = np.unique(np.concatenate([true, guessed]), return_inverse=True)
    true, guessed = codes[: len(true)], codes[len(true) :]
    whole, without = {"macro_f1": _macro_f1, "matthews": _matthews}[metric](true, guessed, len(names))
    return pseudo_values(whole, without)


def _macro_f1(true: NDArray[np.intp], guessed: NDArray[np.intp], classes: int) -> tuple[float, Vector]:
    """The macro F1 of all examples, and (n,) without each of them, which changes the F1 of its two classes alone."""
    hits = np.bincount(true[true == guessed], minlength=classes)
    margin = np.bincount(true, minlength=classes) + np.bincount(guessed, minlength=classes)
    f1 = 2 * hits / margin
    right = true == guessed

    def changed(which: NDArray[np.intp], less: NDArray[np.intp]) -> tuple[Vector, NDArray[np.bool_]]:
        left = margin[which] - less
        gone = left == 0  # a class that occurs nowhere is no longer averaged over
        return np.where(gone, 0.0, 2 * (hits[which] - right) / np.where(gone, 1, left)), gone

    of_label, label_gone = changed(true, np.where(right, 2, 1))
    of_guess, guess_gone = changed(guessed, np.ones_like(guessed))
    total = f1.sum() - f1[true] + of_label + np.where(right, 0.0, of_guess - f1[guessed])
    present = classes - label_gone.astype(int) - (guess_gone & ~right)
    return float(f1.sum() / classes), total / np.maximum(present, 1)


def _matthews(true: NDArray[np.intp], guessed: NDArray[np.intp], classes: int) -> tuple[float, Vector]:
    """The Matthews correlation (Gorodkin 2004) of all examples, and (n,) without each of them."""
    rows = np.bincount(true, minlength=classes).astype(np.float64)
    columns = np.bincount(guessed, minlength=classes).astype(np.float64)
    right = (true == guessed).astype(np.float64)

    def correlation(n: float, hits: Vector, crossed: Vector, of_rows: Vector, of_columns: Vector) -> Vector:
        below = np.sqrt(np.maximum(n * n - of_rows, 0) * np.maximum(n * n - of_columns, 0))
        return np.where(below > 0, (hits * n - crossed) / np.where(below > 0, below, 1), 0.0)

    n, sums = len(true), [right.sum(), rows @ columns, rows @ rows, columns @ columns]
    without = correlation(
        n - 1,
        sums[0] - right,
        sums[1] - columns[true] - rows[guessed] + right,
        sums[2] - 2 * rows[true] + 1,
        sums[3] - 2 * columns[guessed] + 1,
    )
    return float(correlation(n, *(np.asarray(value) for value in sums))), without
