"""A finished comparison whose plan grows: what has been run is not run again."""

import pytest
from test_execution import FakeEngine, folder, go
from test_execution import plan as plan_of

from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.errors import UserError

__all__ = ["folder"]


def task(folder, name="mood", **changes):
    files = {each: folder / f"{each}.tsv" for each in ("train", "dev", "test")}
    return {"name": name, "text_column": "a", "label_column": "b", "finetune": {"epochs": 3}, **files, **changes}


def work(engine):
    return len(engine.of("pretrain")), len(engine.of("finetune"))


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([10, 20], [5, 10, 20], (0, 12)),
        ([10, 20], [10, 20, "all"], (0, 12)),
        (10, [10, 20], (0, 12)),
        ("all", [10, "all"], (0, 12)),
        ([20, 10], [10, 20], (0, 0)),
    ],
)
def test_a_number_of_rows_is_all_that_is_run(folder, before, after, new):
    first = go(folder, FakeEngine(), tasks=[task(folder, train_rows=before)])
    engine = FakeEngine()
    grown = go(folder, engine, tasks=[task(folder, train_rows=after)])
    assert work(engine) == new
    scores = {(score.task, score.predictions) for entry in grown.recipes for score in entry.scores}
    assert {score.predictions for entry in first.recipes for score in entry.scores} <= {each for _, each in scores}
    (curve,) = grown.series
    assert [point.at for point in curve.points] == sorted(40 if rows == "all" else rows for rows in after)
    again = FakeEngine()
    go(folder, again, tasks=[task(folder, train_rows=after)])
    assert again.calls == []


def test_recipes_cells_tasks_and_seeds_are_all_that_is_run(folder):
    grid = {"recipe": "three", "grid": {"training.clip": [1, 2]}}
    go(folder, FakeEngine(), recipes=["one", grid], seeds=2)
    cells = {**grid, "grid": {"training.clip": [1, 2, 3]}}
    kept = {"recipes": ["one", grid], "seeds": 2}
    for changes, new in (
        # From scratch the cells are one model, and the tasks are one task under two names.
        ({"recipes": ["one", cells]}, (2, 2)),
        ({"recipes": ["two", cells, "one"]}, (2, 4)),
        ({"tasks": [task(folder, "other"), task(folder)]}, (0, 0)),
        ({"seeds": 3}, (5, 8)),
        ({"finetune_seeds": 2}, (0, 24)),
    ):
        kept |= changes
        engine = FakeEngine()
        go(folder, engine, **kept)
        assert work(engine) == new, changes


def test_numbers_of_rows_that_come_to_the_same_are_refused(folder):
    with pytest.raises(UserError, match="task “mood”: train_rows: 2 of them are the same 40 rows, all that can be"):
        go(folder, FakeEngine(), tasks=[task(folder, train_rows=[10, 40, "all"])])
    with pytest.raises(UserError, match="task “mood”: train_rows: 50 are more than the 40 rows that can be learned"):
        go(folder, FakeEngine(), tasks=[task(folder, train_rows=[10, 50])])


def test_a_number_of_rows_above_those_of_train_is_said_in_a_line_and_takes_all(folder):
    said = []
    values = plan_of(folder, tasks=[task(folder, train_rows=50)])
    results = compare(values, folder / "out", engine=FakeEngine(), report=lambda *all: None, progress=said.append)
    assert results.tasks[0].rows["train"] == 40
    assert "mood: train_rows is 50, more than there are: all 40 rows are learned from" in [
        line.replace("“", "").replace("”", "") for line in said
    ]


def test_only_some_recipes_now_and_the_rest_later_into_the_same_folder(folder):
    grid = {"recipe": "three", "grid": {"training.clip": [1, 2]}}
    plan = {"recipes": ["one", "two", grid], "seeds": 3}
    some, cells, rest = FakeEngine(), FakeEngine(), FakeEngine()
    first = go(folder, some, **plan, only=["two"])
    assert work(some) == (3, 6)
    assert [entry.label for entry in first.recipes] == ["two"]
    assert first.later == ["one", "three, clip 1", "three, clip 2"]
    assert any(each.startswith("Not all trained yet: “one”, “three, clip 1” and") for each in cautions(first))
    second = go(folder, cells, **plan, only=["three"])
    assert work(cells) == (6, 9)  # from scratch the cells are one model
    assert [entry.label for entry in second.recipes] == ["two", "three, clip 1", "three, clip 2"]
    assert second.analyses[0].pretrained["two"].seeds == first.analyses[0].pretrained["two"].seeds
    whole = go(folder, rest, **plan)
    assert work(rest) == (3, 6)
    assert whole.later == []
    other = folder / "other"
    other.mkdir()
    straight = compare(plan_of(folder, **plan), other, engine=FakeEngine(), report=lambda results, path: None)
    assert (straight.recipes, straight.analyses) == (whole.recipes, whole.analyses)
    with pytest.raises(UserError, match="--only tow: the plan has no such recipe; did you mean 'two'"):
        go(folder, FakeEngine(), **plan, only=["tow"])
