"""Comparisons on tasks whose test rows belong together."""

import json

import numpy as np
import pytest
from test_execution import FakeEngine, folder, plan  # noqa: F401

from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.statistics import Group, all_pairs


class ByArticles(FakeEngine):
    """An engine whose test rows are some to an article."""

    rows_of_an_article = 4

    def task(self, task):
        data = super().task(task)
        column = task.data.cluster_column
        return data._replace(clusters=[n // self.rows_of_an_article for n in range(len(data.test))] if column else [])


def go(folder, engine, column, report=None):  # noqa: F811
    values = plan(folder)
    (task,) = values.tasks
    task = task.model_copy(update={"data": task.data.model_copy(update={"cluster_column": column})})
    values = values.model_copy(update={"tasks": [task]})
    return compare(values, folder / "out", engine=engine, report=report or (lambda results, path: None))


def by_hand(folder, results, clusters):  # noqa: F811
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


def test_the_verdict_is_by_clusters_and_a_column_named_later_trains_nothing_anew(folder):  # noqa: F811
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
