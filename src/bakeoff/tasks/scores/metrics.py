"""Scores of a classifier: accuracy, macro F1 and the Matthews correlation, as fractions."""

from collections.abc import Sequence

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
    from torchmetrics.functional.classification import multiclass_matthews_corrcoef as multiclass_matthews

    target, predicted = torch.tensor(labels), torch.tensor(predictions)
    size = max(classes, 2)  # torchmetrics refuses a single class
    constant = bool((target == target[0]).all() or (predicted == predicted[0]).all())
    scores = {
        "accuracy": float(multiclass_accuracy(predicted, target, size, average="micro")),
        "macro_f1": float(multiclass_f1_score(predicted, target, size, average="macro")),
        "matthews": 0.0 if constant else float(multiclass_matthews(predicted, target, size)),
    }
    # torchmetrics counts in float32; its eighth digit would be noise in every file of results.
    return {name: round(value, 7) for name, value in scores.items()}


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
