"""Comparisons on tasks whose test rows belong together, or all have one answer."""

import json

import numpy as np
import pytest
from tests.comparison.test_execution import FakeEngine, folder, plan

from bakeoff.comparison.analysis import same_answer
from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.pairs import all_pairs
from bakeoff.errors import UserError

__all__ = ["folder"]


class ByArticles(FakeEngine):
    """An engine whose test rows are some to an article."""

    rows_of_an_article = 4

    def task(self, task):
        data = super().task(task)
        column = task.data.cluster_column
        return data._replace(clusters=[n // self.rows_of_an_article for n in range(len(data.test))] if column else [])


def go(folder, engine, column, report=None):
    values = plan(folder)
    (task,) = values.tasks
    task = task.model_copy(update={"data": task.data.model_copy(update={"cluster_column": column})})
    values = values.model_copy(update={"tasks": [task]})
    return compare(values, folder / "out", engine=engine, report=report or (lambda results, path: None))


def by_hand(folder, results, clusters):
    groups = {}
    for entry in results.recipes:
        runs = {}
        for score in entry.scores:
            if score.initialisation == "pretrained":
                lines = map(json.loads, (folder / "out" / score.predictions).read_text().splitlines())
                right = np.array([line["label"] == line["prediction"] for line in lines], float)
                runs[score.seed] = [(right.mean(), right)]
        groups[entry.label] = Group.of(runs, clusters, 1.0)
    return all_pairs(groups)


def test_the_verdict_is_by_clusters_and_a_column_named_later_trains_nothing_anew(folder):
    engine = ByArticles()
    alone = go(folder, engine, None)
    assert alone.tasks[0].clusters is None
    assert alone.analyses[0].pairs == by_hand(folder, alone, None)
    trained = len(engine.of("finetune"))
    pages = []
    together = go(folder, engine, "article", lambda results, path: (write_report(results, path), pages.append(path)))
    assert len(engine.of("finetune")) == trained
    assert together.tasks[0].clusters == 10
    assert together.analyses[0].pairs == by_hand(folder, together, np.arange(40) // 4)
    assert together.analyses[0].pairs[0].p != pytest.approx(alone.analyses[0].pairs[0].p)
    assert "40 test (in 10 clusters)" in pages[0].read_text(encoding="utf-8")
    assert go(folder, engine, None).analyses == alone.analyses


class OlderRows(FakeEngine):
    """An engine one of whose seeds was tested on other rows."""

    def finetune(self, source, task, out, **options):
        super().finetune(source, task, out, **options)
        if "seed-1" in out.parts and "one" in out.parts:
            lines = (out / "predictions.jsonl").read_text().splitlines(keepends=True)
            (out / "predictions.jsonl").write_text("".join(lines[1:] + lines[:1]))


def test_runs_that_were_tested_on_other_rows_are_not_compared(folder):
    with pytest.raises(UserError, match=r"seed-1.*predictions\.jsonl: of other test rows than those of other runs"):
        go(folder, OlderRows(), None)


class Dull(FakeEngine):
    """An engine of which one recipe answers the same to everything with two of its seeds."""

    def finetune(self, source, task, out, **options):
        super().finetune(source, task, out, **options)
        if "one" in out.parts and "pretrained-0" in out.parts and "seed-1" not in out.parts:
            lines = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
            rows = [json.dumps({**line, "prediction": "c1"}) + "\n" for line in lines]
            (out / "predictions.jsonl").write_text("".join(rows))


def test_a_model_that_answers_the_same_to_everything_is_told(folder):
    results = go(folder, Dull(), None)
    found = [(each.recipe, each.seed, each.initialisation, each.answer) for each in results.analyses[0].same_answers]
    assert found == [("one", 0, "pretrained", "c1"), ("one", 2, "pretrained", "c1")]
    assert any(
        "one on mood (seeds 0 and 2: c1)" in line.replace("“", "").replace("”", "") for line in cautions(results)
    )


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([("a", "b"), ("b", "b")], "b"),
        ([("a", "b"), ("b", "a")], None),
        ([("a", "a"), ("a", "a")], None),  # no other label is there
        ([(["X", "Y"], ["X", "X"]), (["Y"], ["X"])], "X"),  # a tag for each word
        ([(["X", "Y"], ["X", "Y"]), (["Y"], ["X"])], None),
        ([(["toxic", "rude"], []), (["rude"], [])], "[]"),  # any number of labels
        ([(["a text"], ""), (["other"], "")], '""'),  # no answer to any question
        ([(1.5, 2.25), (3.0, 2.25)], "2.25"),
        ([(0, 1), (1, 1)], "1"),
    ],
)
def test_one_answer_of_every_kind(lines, answer):
    records = [{"label": label, "prediction": prediction} for label, prediction in lines]
    assert same_answer(records) == answer
