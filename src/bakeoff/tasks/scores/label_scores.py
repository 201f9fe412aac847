"""Scores of classes and labels: accuracy, macro F1, Matthews correlation; precision, recall and F1 of each label."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.config import Config

OF_ONE_CLASS: dict[str, Callable[[NDArray[np.bool_], NDArray[np.bool_]], tuple[Any, Any]]] = {
    "f1": lambda true, predicted: (2.0 * (true & predicted), true.astype(int) + predicted),
    "precision": lambda true, predicted: (true & predicted, predicted),
    "recall": lambda true, predicted: (true & predicted, true),
}
"""Functions for the scores of one class: what each row adds to the numerator and to the denominator."""


class LabelScore(Config):
    """The scores of the predictions of one label, as fractions; a ratio is 0 where its denominator is 0."""

    precision: float
    """The share of the label's predictions that are right."""
    recall: float
    """The share of the examples, or spans, with the label for which it is predicted."""
    f1: float
    """2 P R / (P + R) of precision P and recall R (van Rijsbergen 1979)."""
    count: int = Field(ge=0)
    """The number of examples, or spans, with the label."""


class LabelCounts(NamedTuple):
    """Counts of one label."""

    right: int
    """The number of right predictions of the label."""
    wanted: int
    """The number of examples, or spans, with the label."""
    given: int
    """The number of predictions of the label, right and wrong ones."""


def label_scores(counts: Mapping[str, LabelCounts]) -> dict[str, LabelScore]:
    """The scores of each label by its name, in the order of the counts."""
    return {
        name: LabelScore(
            precision=round(each.right / max(1, each.given), 7),
            recall=round(each.right / max(1, each.wanted), 7),
            f1=round(2 * each.right / max(1, each.given + each.wanted), 7),
            count=each.wanted,
        )
        for name, each in counts.items()
    }


def counts_of(labels: list[str], predictions: list[str], names: list[str]) -> dict[str, LabelCounts]:
    """The counts of each class by its name, where every example has one right and one predicted class."""
    right = (label for label, predicted in zip(labels, predictions, strict=True) if label == predicted)
    return counts_from(right, labels, predictions, names)


def counts_from(
    right: Iterable[str], wanted: Iterable[str], given: Iterable[str], names: Sequence[str] | None = None
) -> dict[str, LabelCounts]:
    """The counts of labels by name; by default of all labels that occur, sorted.

    Args:
        right: the label of each right prediction.
        wanted: the label of each example, or span.
        given: the label of each prediction.
        names: the labels to count; None: all labels of `wanted` and `given`.
    """
    counted = [Counter(side) for side in (right, wanted, given)]
    known = sorted({*counted[1], *counted[2]}) if names is None else names
    return {name: LabelCounts(*(side[name] for side in counted)) for name in known}


METRICS = ("accuracy", "macro_f1", "matthews")


def score(labels: Sequence[int], predictions: Sequence[int], classes: int) -> dict[str, float]:
    """Accuracy, macro F1 and the Matthews correlation of predictions.

    Macro F1 is the mean over the classes that occur among the labels or the predictions. The Matthews correlation
    is 0 where the labels or the predictions are all of one class, since a constant correlates with nothing.

    Args:
        labels: the true class of every example, in 0 .. classes - 1.
        predictions: the predicted class of every example, in the same order.
        classes: the number of classes of the task.

    Returns:
        accuracy and macro_f1 in 0..1 and matthews in -1..1.

    Raises:
        ValueError: there are no labels, or not one prediction for each label.
    """
    if len(labels) != len(predictions) or not len(labels):
        raise ValueError(f"{len(labels)} labels and {len(predictions)} predictions: one of each per example is needed")
    # Imported here: the baselines and `bakeoff --help` get by without torch until something is scored.
    import torch
    from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

    target, predicted = torch.tensor(labels), torch.tensor(predictions)
    size = max(classes, 2)  # torchmetrics refuses a single class
    scores = {
        "accuracy": float(multiclass_accuracy(predicted, target, size, average="micro")),
        "macro_f1": float(multiclass_f1_score(predicted, target, size, average="macro")),
        "matthews": _matthews(labels, predictions, size),
    }
    # torchmetrics counts in float32; its eighth digit would be noise in every file of results.
    return {name: round(value, 7) for name, value in scores.items()}


def _matthews(labels: Sequence[int], predictions: Sequence[int], classes: int) -> float:
    """The Matthews correlation of several classes (Gorodkin 2004), in float64.

    It is a small difference of squares of the number of rows, of which float32 keeps two digits for a rare class among
    a million rows.
    """
    true, guessed = np.asarray(labels), np.asarray(predictions)
    rows, columns = (np.bincount(side, minlength=classes).astype(np.float64) for side in (true, guessed))
    square = float(len(true)) ** 2
    below = float(np.sqrt((square - rows @ rows) * (square - columns @ columns)))
    return float(len(true) * (true == guessed).sum() - rows @ columns) / below if below else 0.0


def positive_scores(labels: list[int], predictions: list[int], positive: int) -> dict[str, float]:
    """F1, precision and recall of one class, as fractions; 0 where no prediction of the class is right.

    F1 = 2 P R / (P + R) of the precision P and the recall R (van Rijsbergen 1979).
    """
    right = sum(label == prediction == positive for label, prediction in zip(labels, predictions, strict=True))
    predicted, true = predictions.count(positive), labels.count(positive)
    scores = {
        "f1": 2 * right / max(1, predicted + true),
        "precision": right / max(1, predicted),
        "recall": right / max(1, true),
    }
    return {name: round(value, 7) for name, value in scores.items()}
