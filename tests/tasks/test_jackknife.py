"""What examples contribute to metrics, against the metric computed anew without each of them."""

import numpy as np
import pytest

from bakeoff.tasks.jackknife import of_classes
from bakeoff.tasks.metrics import score


def pseudo_values(examples, metric):
    """The definition; `metric` scores a list of examples."""
    count = len(examples)
    without = [metric(examples[:i] + examples[i + 1 :]) for i in range(count)]
    return count * metric(examples) - (count - 1) * np.array(without)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "matthews"])
@pytest.mark.parametrize(("classes", "rows"), [(2, 12), (3, 40), (9, 25), (9, 8)])  # in the last, classes of one row
def test_contributions_are_jackknife_pseudo_values(metric, classes, rows):
    random = np.random.default_rng([classes, rows])
    labels = random.integers(classes, size=rows)
    predictions = np.where(random.random(rows) < 0.6, labels, random.integers(classes, size=rows))
    whole = score(labels.tolist(), predictions.tolist(), classes)[metric]
    without = [
        score(np.delete(labels, i).tolist(), np.delete(predictions, i).tolist(), classes)[metric] for i in range(rows)
    ]
    expected = rows * whole - (rows - 1) * np.array(without)
    assert of_classes(labels, predictions, metric) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("metric", ["macro_f1", "matthews"])
def test_contributions_predict_the_noise_of_the_test_set(metric):
    random = np.random.default_rng(0)
    seen, estimated = [], []
    for _ in range(200):
        labels = random.choice(3, p=[0.5, 0.3, 0.2], size=400)
        predictions = np.where(random.random(400) < 0.7, labels, random.integers(3, size=400))
        seen.append(score(labels.tolist(), predictions.tolist(), 3)[metric])
        estimated.append(np.sqrt(np.var(of_classes(labels, predictions, metric), ddof=1) / 400))
    assert np.mean(estimated) == pytest.approx(np.std(seen), rel=0.15)


def test_contributions_take_names_of_classes():
    assert of_classes(["a", "b", "a"], ["a", "a", "a"], "accuracy").tolist() == [1, 0, 1]
    assert len(of_classes(["a", "b", "a"], ["a", "a", "c"], "macro_f1")) == 3
