"""Pre-trainings that end after a share of the budget, from a copy of the whole one."""

import csv
import shutil

import pytest
from small_plans import write_plan
from test_execution import FakeEngine, folder, go
from test_growing import work

from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.report import write_report
from bakeoff.digests import digest
from bakeoff.errors import UserError
from bakeoff.runs.run import Run

__all__ = ["folder"]

PLAN = {"recipes": ["gpt-tiny.yaml"], "budget": "steps=20", "seeds": 1}


def quiet(results, path):
    """No report."""


def weights(out, where="pretrain"):
    return digest(out / "runs/gpt-tiny/seed-0" / where / "model.safetensors")


@pytest.fixture(scope="module")
def done(tmp_path_factory, corpus):
    """A comparison without and one with checkpoints, of the same recipe."""
    folder = tmp_path_factory.mktemp("checkpoints")
    plan = write_plan(folder, corpus, 20, 1, **PLAN, tasks=[])
    compare(plan, folder / "plain", jobs=1, report=quiet)
    plan = write_plan(folder, corpus, 20, 1, **PLAN, checkpoints=["50 %", "100 %"])
    return folder, plan, compare(plan, folder / "out", jobs=1, report=quiet)


def test_the_whole_pre_training_is_trained_once_and_stays_as_it_is(done):
    folder, _, results = done
    assert weights(folder / "out") == weights(folder / "plain")
    (entry,) = results.recipes
    (checkpoint,) = entry.checkpoints
    assert (checkpoint.share, checkpoint.steps) == (0.5, 10)
    assert [run.steps for run in checkpoint.runs] == [10]
    assert {score.initialisation for score in checkpoint.scores} == {"pretrained"}
    (curve,) = results.series
    assert (curve.scale, [point.name for point in curve.points]) == ("budget", ["50 %", "100 %"])
    assert curve.points[0].scratch == curve.points[1].scratch
    assert weights(folder / "out", "after-50-percent/pretrain") != weights(folder / "out")


@pytest.mark.slow
def test_measures_are_measured_at_checkpoints_and_a_finished_comparison_gets_them_later(done, corpus):
    folder, _, _ = done
    shutil.copytree(folder / "out", folder / "measured")
    before = weights(folder / "measured"), weights(folder / "measured", "after-50-percent/pretrain")
    plan = write_plan(folder, corpus, 20, 1, **PLAN, checkpoints=["50 %"], measures=[{"kind": "held_out_text"}])
    results = compare(plan, folder / "measured", jobs=1, report=write_report)
    assert before == (weights(folder / "measured"), weights(folder / "measured", "after-50-percent/pretrain"))
    tasks, texts = [each for each in results.series if each.task == "mood"], results.series[1:]
    assert len(tasks) == 1
    assert texts
    (checkpoint,) = results.recipes[0].checkpoints
    (measured,), (whole,) = checkpoint.measurements, results.recipes[0].measurements
    for curve, analysis in zip(texts, results.analyses[1:], strict=True):
        half, end = (point.pretrained["gpt-tiny"].mean for point in curve.points)
        metric = next(each.metric for each in results.tasks if each.name == analysis.task)
        assert (half, end) == (pytest.approx(measured.scores[metric]), pytest.approx(whole.scores[metric]))
        assert half != end
    rows = [*csv.DictReader((folder / "measured/results.csv").read_text(encoding="utf-8").splitlines())]
    assert [(row["task"], row["budget_share"]) for row in rows if row["initialisation"] == "pretrained"] == [
        ("mood", "1.0"),
        ("held-out text", "1.0"),
        ("mood", "0.5"),
        ("held-out text", "0.5"),
    ]
    assert [row["pretrain_steps"] for row in rows if row["budget_share"] == "0.5"] == [str(checkpoint.steps)] * 2


@pytest.mark.slow
def test_no_line_says_that_a_planned_stop_was_an_interruption(tmp_path, corpus):
    said = []
    plan = write_plan(tmp_path, corpus, 20, 1, **PLAN, checkpoints=["50 %"])
    compare(plan, tmp_path / "out", jobs=1, report=quiet, progress=said.append)
    assert not any("resumed" in line for line in said)


def test_its_learning_rate_falls_to_zero_in_the_last_fifth(done):
    folder, _, _ = done
    run = Run(folder / "out/runs/gpt-tiny/seed-0/after-50-percent/pretrain")
    whole = Run(folder / "out/runs/gpt-tiny/seed-0/pretrain")
    schedule, rate = run.recipe.training.schedule, run.recipe.training.optimizer.rate
    trunk = whole.recipe.training
    assert rate == pytest.approx(trunk.optimizer.rate * trunk.schedule.factor(8, 20))
    assert [schedule.factor(step, 10) for step in (8, 9, 10)] == pytest.approx([1, 0.5, 0])


def test_a_share_that_is_added_later_is_the_same_to_the_bit(done, corpus):
    folder, plan, _ = done
    out = folder / "again"
    shutil.copytree(folder / "plain", out)
    before = weights(out)
    compare(plan, out, jobs=1, report=quiet)
    assert weights(out) == before
    where = "after-50-percent/pretrain"
    assert weights(out, where) == weights(folder / "out", where)


def test_only_what_is_new_is_run(folder):
    go(folder, FakeEngine(), checkpoints=["10 %"])
    for checkpoints, new in ((["10 %", "30 %"], (6, 6)), (["30 %"], (0, 0)), ([], (0, 0))):
        engine = FakeEngine()
        go(folder, engine, checkpoints=checkpoints)
        assert work(engine) == new


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoints": ["10"]}, "checkpoints.0: '10' is no share of a pre-training's budget above 0"),
        ({"checkpoints": ["10 %", "10.0 %"]}, "checkpoints: 10 % stands there twice"),
        ({"checkpoints": ["5 %", "10 %"]}, "checkpoints, recipe gpt-tiny: 5 % of 20 steps are 1, and 10 are the"),
        ({"checkpoints": ["5 %"]}, "give 50 % at least"),
        ({"checkpoints": ["10 %"], "budget": "steps=10"}, "10 are the fewest; give a larger budget"),
    ],
)
def test_what_is_no_checkpoint(tmp_path, corpus, changes, message):
    plan = write_plan(tmp_path, corpus, 20, 1, **{**PLAN, **changes})
    with pytest.raises(UserError) as error:
        compare(plan, tmp_path / "out", jobs=1, report=quiet)
    assert message in str(error.value)
    assert not (tmp_path / "out").exists()
