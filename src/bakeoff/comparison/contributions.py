"""What each test example contributes to a metric, so that the noise of a finite test set can be estimated."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def contributions(labels: Sequence[int], predictions: Sequence[int], metric: str) -> Vector:
    """Jackknife pseudo-values: n * metric(all) - (n - 1) * metric(all but i), one for each of the n examples.

    For accuracy this is exactly 1 for a right and 0 for a wrong answer. For macro F1 and the Matthews correlation,
    which are not means over examples, the variance of the pseudo-values over n estimates the variance of the metric
    (Tukey 1958; used in the same way, for readers and cases, by Dorfman, Berbaum and Metz 1992). Every value is a
    closed form of the confusion matrix's margins, so the cost is O(n), whatever the number of classes.

    Returns:
        Pseudo-values (n,), in the examples' order.
    """
    true, guessed = np.asarray(labels), np.asarray(predictions)
    if metric == "accuracy":
        return np.asarray(true == guessed, dtype=np.float64)
    names, codes = np.unique(np.concatenate([true, guessed]), return_inverse=True)
    true, guessed = codes[: len(true)], codes[len(true) :]
    whole, without = {"macro_f1": _macro_f1, "matthews": _matthews}[metric](true, guessed, len(names))
    return np.asarray(len(true) * whole - (len(true) - 1) * without, dtype=np.float64)


def _macro_f1(true: NDArray[np.intp], guessed: NDArray[np.intp], classes: int) -> tuple[float, Vector]:
    """Macro F1 of all examples, and without each of them: only the F1 of its two classes changes."""
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
    """The Matthews correlation (Gorodkin 2004) of all examples, and without each of them."""
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
