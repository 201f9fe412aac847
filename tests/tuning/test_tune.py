"""Searches that train: real trials of a tiny recipe."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from tests.conftest import PLAIN, shrink

from bakeoff.checking import check
from bakeoff.cli import run
from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.budget import Budget
from bakeoff.overview.listing import list_runs, state_text
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.training.pretrain import pretrain
from bakeoff.tuning.engine import TrialEngine
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.tune import tune

RECIPE = shrink("gpt-tiny", **PLAIN, **{"model.decoder.layers": 1})
STEPS = Budget(steps=100)
OVER = {RATE: [1e-5, 1e-3, 1e-2]}


class Listening(TrialEngine):
    """Keeps what trials say."""

    def __init__(self):
        self.lines = []

    def carry_out(self, job, progress, note):
        return super().carry_out(job, lambda each: self.lines.append(each.get("line", "")), note)

    @property
    def resumed(self):
        return [line for line in self.lines if "resumed" in line]


SAID = Listening()
"""What the trials of `whole` said."""


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A search that was not interrupted, and where it is."""
    out = tmp_path_factory.mktemp("tuning") / "whole"
    return tune(RECIPE, corpus.path, out, over=OVER, budget=STEPS, device="cpu", engine=SAID), out


def test_the_best_trial_is_what_pretrain_makes_of_the_recipe_that_is_written(whole, corpus, tmp_path):
    results, out = whole
    assert [trial.values[RATE] for trial in results.trials] == [1e-3, 1e-5, 1e-2]
    assert results.states == ["finished", "stopped", "finished"]
    assert results.best == 2
    assert results.trials[1].step == 25
    recipe = load_recipe(out / "recipe.yaml")
    made = pretrain(recipe, corpus.path, tmp_path / "run", budget=STEPS, device="cpu", progress=False)
    best = Run.open_finished(out / "trials" / "002")
    assert made.summary["validation"]["losses"] == best.summary["validation"]["losses"]
    assert made.weights_file().read_bytes() == best.weights_file().read_bytes()
    assert results.winner.losses[-1] == best.summary["validation"]["loss"]
    assert not (out / "trials" / "001" / "checkpoints").exists()
    assert not check(out).problems


def test_a_trial_that_its_search_has_dropped_is_not_said_to_go_on(whole, corpus, tmp_path, capsys):
    _, out = whole
    dropped = out / "trials" / "001"
    states = {entry.path.name: state_text(entry) for entry in list_runs(out)}
    assert (states["001"], states["000"]) == ("dropped at step 25 of 100", "finished")
    assert run(["watch", str(dropped)]) == 0
    assert "dropped at step 25 of 100" in capsys.readouterr().out
    said = f"its search, {out}, has dropped it, and kept no weights of it"
    for command in (["embed", str(dropped), "x"], ["pretrain", "--from", str(dropped), "--corpus", str(corpus.path)]):
        more = ["--out", str(tmp_path / "out")] if command[0] == "pretrain" else []
        assert run([*command, *more]) == 2
        assert capsys.readouterr().err.strip().endswith(said)
    begun = tmp_path / "begun"
    shutil.copytree(out, begun)
    (begun / "results.json").unlink()
    (waiting,) = (entry for entry in list_runs(begun) if entry.path.name == "001")
    assert state_text(waiting) == "stopped at step 25 of 100"
    with pytest.raises(UserError, match=r"its search, .*begun, goes on with it, by the same command"):
        Run.open_trained(begun / "trials" / "001")


def test_a_trial_that_goes_on_after_an_evaluation_is_not_said_to_be_resumed(whole):
    results, _ = whole
    assert [len(trial.losses) for trial in results.trials] != [1, 1, 1]  # some went on
    assert SAID.lines
    assert SAID.resumed == []


class Stopping(TrialEngine):
    """Stops within the training of that number, at its fifth step."""

    def __init__(self, training):
        self.training, self.trained = training, 0

    def carry_out(self, job, progress, note):
        self.trained += 1
        noted = []

        def stop(each):
            noted.append(each)
            if self.trained == self.training and sum("done" in each for each in noted) == 5:
                signal.raise_signal(signal.SIGTERM)

        return super().carry_out(job, stop, note)


@pytest.mark.parametrize("training", [2, *(pytest.param(place, marks=pytest.mark.slow) for place in (1, 5))])
def test_a_search_that_is_stopped_within_a_trial_goes_on_bit_for_bit(whole, corpus, tmp_path, training, monkeypatch):
    monkeypatch.setattr("bakeoff.display.progress.NOTE_SECONDS", -1.0)
    results, out = whole
    with pytest.raises(Interrupted, match="the same command goes on"):
        tune(RECIPE, corpus.path, tmp_path / "out", over=OVER, budget=STEPS, device="cpu", engine=Stopping(training))
    engine = Listening()
    again = tune(RECIPE, corpus.path, tmp_path / "out", over=OVER, budget=STEPS, device="cpu", engine=engine)
    assert engine.resumed == [f"{RECIPE.name}: resumed at step {5 if training < 4 else 30}"]
    assert [trial.losses for trial in again.trials] == [trial.losses for trial in results.trials]
    for name in ("000", "002"):
        files = [Run.open_finished(folder / "trials" / name).weights_file() for folder in (out, tmp_path / "out")]
        assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
def test_side_by_side_is_as_in_turn(whole, corpus, tmp_path):
    results, out = whole
    beside = tune(RECIPE, corpus.path, tmp_path / "out", over=OVER, budget=STEPS, device="cpu", jobs=2)
    assert [trial.losses for trial in beside.trials] == [trial.losses for trial in results.trials]
    assert (beside.best, beside.states) == (results.best, results.states)
    weights = [Run.open_finished(folder / "trials" / "002").weights_file() for folder in (out, tmp_path / "out")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.slow
def test_an_error_in_a_process_comes_through_and_a_divergence_is_a_result(corpus, tmp_path, capsys):
    over = {RATE: [1e-3, 1e30]}
    results = tune(RECIPE, corpus.path, tmp_path / "out", over=over, budget=Budget(steps=8), device="cpu", jobs="auto")
    assert results.states == ["finished", "diverged"]
    assert results.trials[1].diverged is not None
    states = {entry.path.name: state_text(entry) for entry in list_runs(tmp_path / "out")}
    assert states["001"].startswith("diverged at step")
    assert run(["watch", str(tmp_path / "out/trials/001")]) == 2
    assert capsys.readouterr().err.strip().endswith(results.trials[1].diverged)
    foreign = tmp_path / "other" / "trials" / "000"
    foreign.mkdir(parents=True)
    with pytest.raises(UserError, match="holds something else already"):
        tune(RECIPE, corpus.path, tmp_path / "other", over=over, budget=Budget(steps=8), device="cpu", jobs=2)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "to_all"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_signal_stops_all_trials_side_by_side_with_their_checkpoints(corpus, tmp_path, number, to_all):
    (tmp_path / "recipe.yaml").write_text(RECIPE.to_yaml())
    options = ["--budget", "steps=5000", "--trials", "2", "--jobs", "2", "--device", "cpu"]
    arguments = ["tune", tmp_path / "recipe.yaml", "--corpus", corpus.path, "--out", tmp_path / "out", *options]
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bakeoff.cli import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    begun = time.monotonic()
    logs = [tmp_path / "out" / "trials" / name / "metrics.jsonl" for name in ("000", "001")]
    while not all(log.is_file() and log.read_text().count("\n") > 1 for log in logs):
        assert time.monotonic() - begun < 120, process.communicate(timeout=5)
        time.sleep(0.1)
    (os.killpg if to_all else os.kill)(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert said.splitlines()[-1] == (
        f"bakeoff: {tmp_path / 'out'}: interrupted; what is done is kept, and the same command goes on"
    )
    assert "Traceback" not in said
    for log in logs:
        assert len(list((log.parent / "checkpoints").glob("step-*"))) == 1


@pytest.mark.slow
def test_losses_under_another_objective_are_measured_under_the_recipes_own(corpus, tmp_path):
    """A model that was trained on rarer targets is compared on the recipe's own targets, not on its."""
    recipe, seen = shrink("bert-tiny"), []

    class Engine(TrialEngine):
        def carry_out(self, job, progress, note):
            seen.append((job, super().carry_out(job, progress, note)))
            return seen[-1][1]

    over = {RATE: [1e-3], "objective.0.rate": [0.15, 0.5]}
    results = tune(
        recipe, corpus.path, tmp_path / "out", over=over, budget=Budget(steps=8), device="cpu", engine=Engine()
    )
    assert {trial.values["objective.0.rate"] for trial in results.trials} == {0.15, 0.5}
    for job, outcome in seen:
        own = Run.open_finished(job.out)
        trained = own.summary["validation"]["loss"]
        same = job.recipe["objective"][0]["rate"] == 0.15
        assert (outcome.loss == pytest.approx(trained, abs=1e-6)) == same
    both = {RATE: [1e-3], "objective": [recipe.model_dump()["objective"], [{"kind": "mlm"}]]}
    with pytest.raises(UserError, match="compared under the recipe's own, which does not fit this model"):
        tune(recipe, corpus.path, tmp_path / "other", over=both, budget=Budget(steps=8), device="cpu")
    assert not (tmp_path / "other").exists()


def test_minutes_become_steps_once(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("bakeoff.training.speed.MEASURE_SECONDS", 0.01)
    monkeypatch.setattr("bakeoff.training.resolution.step_times", lambda *arguments, **options: [_Time(0.5)])
    lines = []
    budget, over = Budget(minutes=0.1), {RATE: [1e-3, 2e-3]}
    tune(RECIPE, corpus.path, tmp_path / "out", over=over, budget=budget, device="cpu", jobs=1, progress=lines.append)
    assert sum(line.startswith("measuring the speed") for line in lines) == 1
    assert (
        "2 trials of 0.1 minutes (12 steps) each; none is stopped early: all cost 2 full trainings at most, 12 s"
        in lines[1]
    )
    monkeypatch.setattr("bakeoff.training.resolution.step_times", None)
    again = tune(RECIPE, corpus.path, tmp_path / "out", over=over, budget=budget, device="cpu", jobs=1)
    assert [trial.steps for trial in again.trials] == [12, 12]


class _Time:
    def __init__(self, seconds):
        self.seconds = seconds


def test_the_command_prints_a_table_or_json(whole, corpus, capsys, tmp_path):
    (tmp_path / "gpt-tiny.yaml").write_text(RECIPE.to_yaml())
    _, out = whole
    arguments = ["tune", str(tmp_path / "gpt-tiny.yaml"), "--corpus", str(corpus.path), "--out", str(out)]
    arguments += ["--over", f"{RATE}=1e-05,0.001,0.01", "--budget", "steps=100", "--device", "cpu"]
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "training.optimizer.lr: 0.01, before 0.001" in text
    assert "25 of 100" in text
    assert "the best value, 0.01, is the highest that was tried" in text
    assert run([*arguments, "--json"]) == 0
    printed = capsys.readouterr().out
    assert (out / "results.json").read_text() == printed


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ("model.decoder.width=32,33", "--over: width 33: .*33"),
        ("model.decoder.block.mixer.heads=2..3", "--over: heads 3: .*3 heads do not divide the width 32"),
    ],
)
def test_what_cannot_be_built_or_fed_is_refused_before_any_trial(corpus, tmp_path, over, said):
    with pytest.raises(UserError, match=said):
        tune(RECIPE, corpus.path, tmp_path / "out", over=[over], budget=Budget(steps=4), device="cpu", trials=3)
    assert not (tmp_path / "out").exists()


def test_a_mixture_can_be_searched_on(mixture, tmp_path):
    results = tune(RECIPE, mixture, tmp_path / "out", over={RATE: [1e-3]}, budget=Budget(steps=4), device="cpu", jobs=1)
    assert math.isfinite(results.winner.losses[-1])
    assert any("only one trial was trained to its end" in line for line in results.cautions)
