"""How near an answer is to the right one, by which a report chooses the rows on which recipes differ."""

import numpy as np
import pytest

from bakeoff.tasks.registry import TASKS

TAGS = ["B-x", "I-x", "O", "B-x"]
ANSWERS = {
    "classification": ("a", ["a", "b"]),
    "choice": (1, [1, 0]),
    "regression": (2.0, [2.0, 2.5, 0.0]),
    "multilabel": (["a", "b"], [["b", "a"], ["a"], ["c"]]),
    "tagging": (TAGS, [TAGS, ["B-x", "I-x", "B-x", "B-x"], [*TAGS[:3], "O"], ["O"] * 4]),
    "question_answering": (["the old river"], ["the old river", "the river", "a stone"]),
    "sequence_to_sequence": ("the old river", ["the old river", "the old rivers", "a stone"]),
}
"""The right answer of each kind of task, and answers to it from the nearest to the farthest."""
CASES = [(kind, metric) for kind in TASKS for metric in (TASKS[kind].metrics or ["accuracy"])]


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_an_answer_is_as_near_whatever_the_others_are_and_a_better_one_nearer(kind, metric):
    given = {"train": "t.tsv", "text_column": "t", "label_column": "l"}
    values = {key: value for key, value in given.items() if key in TASKS[kind].model_fields}
    config = TASKS[kind].parse({**values, "choices": ["m", "n"]} if kind == "choice" else values, "task")
    right, answers = ANSWERS[kind]
    lines = [
        {"label": right, "prediction": answer, "loss": 2.0 * (1 + at), "tokens": 2, "probabilities": {}}
        for at, answer in enumerate(answers)
    ]
    found = config.nearness(lines, metric)
    assert (np.diff(found) <= 0).all()
    assert found[0] > found[1]
    many = config.nearness([*lines, *lines[-1:] * 7], metric)
    assert many[: len(lines)] == pytest.approx(found)
    assert [config.nearness([line], metric)[0] for line in lines] == pytest.approx(found)
