import numpy as np
import pytest
from sklearn import metrics as oracle

from bakeoff.tasks.scores.label_scores import METRICS, score

# scikit-learn warns where all rows are of one class; that case is meant here.
pytestmark = pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")


def expected(labels, predictions):
    return {
        "accuracy": oracle.accuracy_score(labels, predictions),
        "macro_f1": oracle.f1_score(labels, predictions, average="macro", zero_division=0),
        "matthews": oracle.matthews_corrcoef(labels, predictions),
    }


@pytest.mark.parametrize("classes", [2, 3, 6, 50])
@pytest.mark.parametrize("rows", [1, 2, 17, 400])
@pytest.mark.parametrize("skill", [0.0, 0.7, 1.0])
def test_scores_equal_scikit_learn(classes, rows, skill):
    random = np.random.default_rng([classes, rows])
    labels = random.integers(classes, size=rows)
    guesses = random.integers(classes, size=rows)
    predictions = np.where(random.random(rows) < skill, labels, guesses)
    assert score(labels.tolist(), predictions.tolist(), classes) == pytest.approx(
        expected(labels, predictions), abs=1e-6
    )


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [([0, 0, 0], [0, 0, 0]), ([1, 1, 1], [0, 0, 0]), ([0, 1, 0, 1], [0, 0, 0, 0]), ([0, 0, 1], [1, 1, 0])],
)
@pytest.mark.parametrize("classes", [2, 4])
def test_degenerate_cases(labels, predictions, classes):
    assert score(labels, predictions, classes) == pytest.approx(expected(labels, predictions), abs=1e-6)


def test_a_rare_class_among_many_rows():
    """float32 has 0.4052 for 0.4000 here."""
    labels, predictions = np.zeros((2, 1_000_000), int)
    labels[:5] = predictions[3:8] = 1
    found = score(labels.tolist(), predictions.tolist(), 2)
    assert found["matthews"] == pytest.approx(oracle.matthews_corrcoef(labels, predictions), abs=1e-6)


def test_the_metrics_are_named_once():
    assert tuple(score([0, 1], [0, 1], 2)) == METRICS


@pytest.mark.parametrize(("labels", "predictions"), [([], []), ([0, 1], [0])])
def test_nothing_to_score(labels, predictions):
    with pytest.raises(ValueError, match="per example"):
        score(labels, predictions, 2)
