"""Stopped trainings: continued as they are, given another budget, ended as they stand, and used all the same."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file
from tests.conftest import shrink
from tests.interrupting import interrupt_at

from bakeoff.cli import run as command_line
from bakeoff.durable import held
from bakeoff.errors import Interrupted, UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import generate
from bakeoff.inspection.inspect import inspect
from bakeoff.optimization.budget import Budget
from bakeoff.runs.run import Run
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.trainer import loop
from bakeoff.training import pretraining
from bakeoff.training.initial_weights import Start
from bakeoff.training.pretrain import pretrain


def train(recipe, corpus, out, **options):
    return pretrain(recipe, corpus.path, out, progress=False, device="cpu", **options)


@pytest.fixture
def stop(corpus, tmp_path, monkeypatch):
    """A function that leaves a training of a recipe that was stopped at a step; its run."""

    def stopped(recipe, step, **options):
        with monkeypatch.context() as patch:
            interrupt_at(patch, step - 1)
            with pytest.raises(Interrupted):
                train(recipe, corpus, tmp_path / "run", **options)
        return Run.open(tmp_path / "run")

    return stopped


def weights(run):
    return {name: tensor.tolist() for name, tensor in load_file(run.weights_file()).items()}


def steady(**changes):
    """A recipe whose learning rate does not know how long the training is."""
    schedule = {"kind": "constant", "warmup": 0}
    return shrink("gpt-tiny", **{"training.schedule": schedule, "training.average_last": 0, **changes})


def falling(steps, **changes):
    schedule = {"kind": "linear", "warmup": 4}
    return shrink("gpt-tiny", **{"training.schedule": schedule, "training.budget": {"steps": steps}, **changes})


@pytest.mark.parametrize("name", [pytest.param("bert-tiny", marks=pytest.mark.slow), "transformer-xl-tiny"])
def test_a_run_waits_behind_a_step_and_goes_on_exactly(name, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 15)
    recipe = shrink(name, **{"training.budget": {"steps": 30}})
    whole = train(recipe, corpus, tmp_path / "whole")
    run = train(recipe, corpus, tmp_path / "run", until=15)
    assert (run.finished, run.step()) == (False, 15)
    assert [line["step"] for line in run.metrics() if line["kind"] == "validation"] == [0, 15]
    assert train(recipe, corpus, tmp_path / "run", until=15, resume=True).step() == 15  # it is there already
    assert train(recipe, corpus, tmp_path / "run", until=21, resume=True).step() == 21
    run = train(recipe, corpus, tmp_path / "run", resume=True)
    assert run.weights_file().read_bytes() == whole.weights_file().read_bytes()
    assert run.summary["validation"]["losses"] == whole.summary["validation"]["losses"]
    assert train(recipe, corpus, tmp_path / "beyond", until=99).finished


def test_a_run_goes_on_by_its_directory_alone(stop, corpus, tmp_path):
    recipe = falling(20)
    run = stop(recipe, 9, seed=3, budget=Budget(steps=16))
    resumed = pretrain(None, None, run.path, resume=True, progress=False)
    assert resumed.summary["steps"] == resumed.summary["planned_steps"] == 16
    whole = train(recipe, corpus, tmp_path / "whole", seed=3, budget=Budget(steps=16))
    assert weights(resumed) == weights(whole)


@pytest.mark.parametrize("steps", [14, 30])
def test_with_a_steady_rate_another_budget_is_as_if_it_had_been_the_first(steps, stop, corpus, tmp_path):
    run = stop(steady(), 9, budget=Budget(steps=20))
    resumed = train(None, corpus, run.path, resume=True, budget=Budget(steps=steps))
    whole = train(steady(), corpus, tmp_path / "whole", budget=Budget(steps=steps))
    assert weights(resumed) == weights(whole)
    assert resumed.summary["steps"] == steps


def test_a_falling_rate_goes_on_as_that_of_the_new_budget_and_it_is_said(stop, corpus, capsys):
    run = stop(falling(20), 9)
    resumed = pretrain(None, None, run.path, resume=True, budget=Budget(steps=40))
    said = capsys.readouterr().err
    lr = resumed.recipe.training.optimizer.lr
    old, new = lr * (1 - (9 - 4) / 16), lr * (1 - (9 - 4) / 36)
    expected = f"40 steps in place of 20, from step 9 on: there the learning rate goes from {old:.3g} to {new:.3g}"
    assert expected in said
    rates = {line["step"]: line["learning_rate"] for line in resumed.metrics() if line["kind"] == "train"}
    for step in range(10, 41):
        assert rates[step] == pytest.approx(lr * (1 - (step - 1 - 4) / 36))
    assert resumed.recipe.training.budget.steps == 40
    assert resumed.environment["budget"] == "steps=40"
    assert resumed.environment["budgets"] == [{"from_step": 9, "budget": "steps=40", "steps": 40}]
    assert "| budget changed | at step 9, to 40 steps |" in (run.path / "README.md").read_text()


def test_a_changed_budget_stays_changed(stop, corpus, tmp_path, monkeypatch):
    run = stop(steady(), 9, budget=Budget(steps=20))
    stop(None, 12, resume=True, budget=Budget(steps=30))
    resumed = train(None, corpus, run.path, resume=True)
    assert resumed.summary["steps"] == 30


def test_a_kill_while_the_budget_changes_leaves_one_of_both(stop, corpus, monkeypatch):
    run = stop(steady(), 9, budget=Budget(steps=20))
    with monkeypatch.context() as patch:
        patch.setattr(Run, "replace_environment", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(None, corpus, run.path, resume=True, budget=Budget(steps=30))
    assert train(None, corpus, run.path, resume=True, budget=Budget(steps=20)).summary["steps"] == 20


def test_what_another_budget_cannot_be(stop, corpus, tmp_path):
    run = stop(falling(20, **{"training.curriculum": [{"until": 0.8, "length": 16}]}), 9)

    def with_steps(steps):
        return train(None, corpus, run.path, resume=True, budget=Budget(steps=steps))

    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"--budget steps=9 is 9 steps, and the run has taken 9"):
        with_steps(9)
    with pytest.raises(UserError, match=r"training\.curriculum depends on the share of all steps"):
        with_steps(30)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    assert with_steps(20).finished
    with pytest.raises(UserError, match=f"the run has finished, and its optimizer is gone; .* --from {run.path}"):
        with_steps(30)


def test_an_average_whose_weights_were_not_kept_cannot_be_had(stop, corpus):
    run = stop(steady(**{"training.average_last": 3}), 9, budget=Budget(steps=20))
    with pytest.raises(UserError, match="needs those after step 8, which were not kept; give a larger budget"):
        train(None, corpus, run.path, resume=True, budget=Budget(steps=10))
    assert train(None, corpus, run.path, resume=True, budget=Budget(steps=12)).summary["steps"] == 12
    assert Run.open_finished(run.path.with_name("run-average-3")).environment["origin"].endswith("steps 10, 11, 12")


def test_a_stopped_run_ends_as_it_is(stop, corpus, tmp_path, capsys):
    run = stop(falling(20), 9)
    kept = weights(run)
    ended = pretrain(None, None, run.path, finish_now=True)
    assert "cut short at step 9 of 20" in capsys.readouterr().err
    assert ended.finished
    assert weights(ended) == kept
    assert ended.metrics()[-1]["kind"] == "validation"
    assert ended.metrics()[-1]["step"] == 9
    found = {key: ended.summary[key] for key in ("steps", "planned_steps")}
    assert found == {"steps": 9, "planned_steps": 20}
    assert ended.summary["validation"]["losses"] == ended.metrics()[-1]["losses"]
    assert "| cut short | at step 9 of 20" in (run.path / "README.md").read_text()
    assert train(None, corpus, tmp_path / "next", start=Start(run=run.path), budget=Budget(steps=2)).finished
    assert pretrain(None, None, run.path, finish_now=True).summary == ended.summary  # nothing left to do


def test_what_cannot_be_ended(corpus, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="there is no training with a checkpoint to finish"):
        train(steady(), corpus, tmp_path / "run", finish_now=True)
    assert not (tmp_path / "run").exists()
    exact = loop.optimize

    def fails(*arguments):
        if arguments[2] == 3:
            raise RuntimeError("out of memory")
        return exact(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "optimize", fails)
        with pytest.raises(RuntimeError):
            train(steady(), corpus, tmp_path / "run")
    with pytest.raises(UserError, match="there is no training with a checkpoint to finish"):
        train(None, corpus, tmp_path / "run", finish_now=True)
    with pytest.raises(UserError, match=r"has no checkpoint yet; continue it with .bakeoff pretrain --out "):
        evaluate(tmp_path / "run", corpus=corpus.path)


def test_the_newest_checkpoint_of_a_stopped_run_can_be_used(stop, corpus, tmp_path, labelled):
    run = stop(falling(20), 9)
    figures = evaluate(run.path, corpus=corpus.path)
    written = generate(run.path, ["a"], GenerationConfig(tokens=5))
    looked = inspect(run.path, out=tmp_path / "looked")
    for use in (lambda: finetune(run.path, labelled, tmp_path / "tuned"), lambda: Start(run=run.path).recipe()):
        with pytest.raises(UserError, match=f"has not finished; continue .* --out {run.path} --finish-now"):
            use()
    pretrain(None, None, run.path, finish_now=True, progress=False)
    assert figures["step"] == 9
    assert evaluate(run.path, corpus=corpus.path) == figures
    assert generate(run.path, ["a"], GenerationConfig(tokens=5)) == written
    assert inspect(run.path, out=tmp_path / "looked") == looked


def test_verbs_say_that_a_run_is_not_finished(stop, corpus, capsys):
    path = str(stop(falling(20), 9).path)
    capsys.readouterr()
    said = f"bakeoff: {path}: not finished; its weights are those of step 9 of 20\n"
    for arguments in (["evaluate", path, "--corpus", str(corpus.path)], ["generate", path, "a"], ["inspect", path]):
        assert command_line([*arguments, "--json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == said
        json.loads(captured.out)
    assert command_line(["pretrain", "--out", path, "--finish-now"]) == 0
    assert "9 steps of 20, cut short" in capsys.readouterr().out
    assert command_line(["evaluate", path, "--corpus", str(corpus.path), "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_what_resuming_on_the_command_line_wants(tmp_path, capsys):
    for options, message in [
        (["--resume"], "there is no run to resume; give a recipe and its corpus (--corpus DIR)"),
        (["--finish-now"], "--finish-now: there is no training with a checkpoint to finish"),
        ([], "give the corpus to train on (--corpus DIR)"),
    ]:
        assert command_line(["pretrain", "--out", str(tmp_path / "run"), *options]) == 2
        assert capsys.readouterr().err == f"bakeoff: {tmp_path / 'run'}: {message}\n"
    assert command_line(["pretrain", "--out", str(tmp_path / "run"), "--finish-now", "--budget", "steps=3"]) == 2
    assert "give one of them" in capsys.readouterr().err


@pytest.fixture
def labelled(tmp_path):
    rows = "".join(f"{word} {number}\t{word}\n" for number in range(30) for word in ("yes", "no"))
    (tmp_path / "labelled.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    given = {"name": "task", "train": tmp_path / "labelled.tsv", "text_column": "text", "label_column": "label"}
    return ClassificationConfig.parse(given, "test")


@pytest.mark.parametrize("answer", ["y", *(pytest.param(other, marks=pytest.mark.slow) for other in ("n", None))])
def test_ctrl_c_on_a_terminal_asks_whether_the_run_shall_end(answer, corpus, tmp_path):
    """None: a second Ctrl-C for an answer."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        pytest.skip("what a shell starts in the background is not interrupted")
    out = tmp_path / "run"
    command = [sys.executable, "-m", "bakeoff", "pretrain", "bert-tiny", "--corpus", str(corpus.path)]
    command += ["--out", str(out), "--budget", "steps=100000", "--set", "input.length=32", "--device", "cpu"]
    terminal, end = pty.openpty()
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, start_new_session=True)
    os.close(end)
    metrics = out / "metrics.jsonl"
    said = read_until(terminal, lambda text: metrics.exists())
    process.send_signal(signal.SIGINT)
    said += read_until(terminal, lambda text: "[y/N]" in text)
    if answer is None:
        process.send_signal(signal.SIGINT)
    else:
        os.write(terminal, f"{answer}\n".encode())
    said += read_until(terminal, lambda text: process.poll() is not None)
    assert process.wait(timeout=60) == (0 if answer == "y" else 128 + signal.SIGINT), said
    run = Run.open(out)
    assert run.finished == (answer == "y")
    if answer == "y":
        assert run.summary["steps"] < run.summary["planned_steps"] == 100000
        assert json.loads((out / "summary.json").read_text())["validation"]["step"] == run.summary["steps"]
        assert "cut short" in said


def read_until(terminal, done):
    text, deadline = "", time.monotonic() + 90
    while not done(text):
        assert time.monotonic() < deadline, text
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                text += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # the other end was closed
                break
    return text


def test_a_run_that_a_process_trains_is_left_alone(corpus, tmp_path):
    """Another budget for it is refused before any of its files is changed."""
    run = train(steady(), corpus, tmp_path / "run", until=5)
    before = {path: path.read_bytes() for path in sorted(run.path.rglob("*")) if path.is_file()}
    with held(run.path), pytest.raises(UserError, match="another process is writing here"):
        pretrain(None, None, run.path, progress=False, resume=True, budget=Budget(steps=90))
    assert {path: path.read_bytes() for path in sorted(run.path.rglob("*")) if path.is_file()} == before
