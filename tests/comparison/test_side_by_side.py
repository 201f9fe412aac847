"""Comparisons whose trainings run in several processes: real ones, of tiny recipes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from small_plans import NAMES, write_plan

from bakeoff.cli import run as command
from bakeoff.comparison.execution import compare
from bakeoff.comparison.results import Results
from bakeoff.errors import Interrupted, UserError

KEPT = ("model.safetensors", "predictions.jsonl", "recipe.yaml", "tokenizer.json", "task.yaml")
"""Files of a run that hold no times."""


@pytest.fixture
def write(corpus, tmp_path):
    """Writes a plan of two recipes, with changes."""

    def write(recipes=None, **changes):
        plan = {"budget": "steps=20", "seeds": 2, "from_scratch": False, **changes}
        return write_plan(tmp_path, corpus, 60, 1, **plan, **({"recipes": recipes} if recipes else {}))

    return write


def content(out):
    """By name, what is the same whenever it is computed."""
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.name in KEPT}


def without_times(results):
    scores = [entry.scores for entry in results.recipes]
    losses = [[point.losses for run in entry.runs for point in run.curve] for entry in results.recipes]
    return [[score.model_copy(update={"seconds": 0}) for score in own] for own in scores], losses, results.analyses


def quietly(plan, out, **options):
    return compare(plan, out, report=lambda results, path: None, **options)


@pytest.mark.slow
def test_side_by_side_every_file_is_as_one_at_a_time_whatever_threads_this_process_has(write, tmp_path):
    """With a search: its trials run in the same processes."""
    plan = write(budget="steps=60", search={"trials": 2, "budget": "100 %", "over": {"model.dropout": [0.0]}})
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        one = quietly(plan, tmp_path / "one", jobs=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    lines = []
    several = quietly(plan, tmp_path / "several", jobs=2, progress=lines.append)
    assert content(tmp_path / "several") == content(tmp_path / "one")
    assert without_times(several) == without_times(one)
    assert [entry.search.trials[0].losses for entry in several.recipes] == [
        entry.search.trials[0].losses for entry in one.recipes
    ]
    for out in ("one", "several"):
        assert json.loads((tmp_path / out / "budget.json").read_text())["threads"] == 1
        found = [json.loads(path.read_text())["threads"] for path in (tmp_path / out).rglob("environment.json")]
        assert set(found) == {1}
    assert "seed 1: pre-training gpt-tiny" in lines
    assert sum(line.endswith("report.html") for line in lines) == 2
    again = []
    assert without_times(quietly(plan, tmp_path / "one", jobs=2, progress=again.append)) == without_times(one)
    assert not any("training" in line for line in again)


@pytest.mark.slow
def test_threads_stay_as_a_comparison_was_begun(write, tmp_path):
    """One from before they were kept goes on with those of its runs."""
    plan = write(seeds=1)
    quietly(plan, tmp_path / "out", jobs=1)
    budget = tmp_path / "out/budget.json"
    facts = json.loads(budget.read_text())
    del facts["threads"]
    budget.write_text(json.dumps(facts))
    (tmp_path / "out/bakeoff.sha256").unlink()
    for path in (tmp_path / "out/runs").rglob("pretrain/environment.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "threads": 3}))
        (path.parent / "bakeoff.sha256").unlink()
    quietly(write(seeds=2), tmp_path / "out", jobs=2)
    assert json.loads(budget.read_text())["threads"] == 3
    for name in NAMES:
        made = json.loads((tmp_path / f"out/runs/{name}/seed-1/pretrain/environment.json").read_text())
        assert made["threads"] == 3


@pytest.mark.slow
def test_minutes_are_looked_at_once_whichever_process_trains(write, tmp_path):
    """What was planned before was ten times too slow, so that the first training of each begins anew."""
    out = tmp_path / "out"
    out.mkdir()
    slow = dict.fromkeys(NAMES, 1.0)
    facts = {"text": "minutes=1", "steps": dict.fromkeys(NAMES, 60), "seconds_per_step": slow, "threads": 1}
    (out / "budget.json").write_text(json.dumps({**facts, "work_seconds_per_step": slow}))
    lines = []
    with pytest.raises(Interrupted):
        compare(write(budget="minutes=1"), out, jobs=2, progress=_interrupting(lines, "anew with", 2))
    kept = json.loads((out / "budget.json").read_text())
    assert sorted(kept["corrected"]) == sorted(NAMES)
    assert min(kept["steps"].values()) > 60
    assert kept["work_seconds_per_step"] != slow
    begun = [line for line in lines if line.startswith("seed") and "pre-training" in line]
    assert not any(line.startswith("seed 1") for line in begun)  # it waits for the evaluation


def _interrupting(lines, what, count):
    """Keeps the lines, and behaves as Ctrl-C does after so many with these words."""

    def say(line):
        lines.append(line)
        if what in line and sum(what in each for each in lines) == count:
            raise KeyboardInterrupt

    return say


@pytest.mark.slow
def test_what_diverges_in_a_process_is_left_out_and_what_is_wrong_is_told(write, tmp_path):
    wild = {"recipe": "gpt-tiny.yaml", "name": "wild", "set": {"training.optimizer.lr": 1e30, "training.clip": None}}
    results = quietly(write(["laptop-conv-tiny.yaml", wild]), tmp_path / "out", jobs=2)
    assert [entry.label for entry in results.recipes] == ["laptop-conv-tiny"]
    assert [(failure.recipe, failure.seed) for failure in results.failures] == [("wild", 0)]
    assert Results.read(tmp_path / "out/results.json") == results
    for seed in (0, 1):
        shutil.rmtree(tmp_path / f"out/runs/laptop-conv-tiny/seed-{seed}/mood/pretrained-0")
    (tmp_path / "out/runs/laptop-conv-tiny/seed-1/pretrain/model.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"laptop-conv-tiny/seed-1/pretrain/model.safetensors: damaged"):
        quietly(write(["laptop-conv-tiny.yaml", wild]), tmp_path / "out", jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["interrupt", "kill"])
def test_a_stopped_comparison_keeps_checkpoints_and_goes_on_bit_for_bit(write, tmp_path, what):
    plan = write(budget="steps=250", seeds=1)
    command = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command += "from bakeoff.cli import main; main()"
    arguments = ["compare", plan, "--out", tmp_path / "out", "--jobs", "2"]
    parent = subprocess.Popen(
        [sys.executable, "-c", command, *map(str, arguments)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    logs = [tmp_path / f"out/runs/{name}/seed-0/pretrain/metrics.jsonl" for name in NAMES]
    began = time.monotonic()
    while not all(log.is_file() and log.read_text().count("\n") > 5 for log in logs):
        assert time.monotonic() - began < 120, parent.communicate(timeout=5)
        time.sleep(0.05)
    if what == "interrupt":
        os.killpg(parent.pid, signal.SIGINT)
    else:
        os.kill(_children(parent.pid)[0], signal.SIGKILL)
    _, said = parent.communicate(timeout=60)
    last = said.splitlines()[-1]
    assert "Traceback" not in said
    saved = [log for log in logs if list((log.parent / "checkpoints").glob("step-*"))]
    if what == "interrupt":
        assert parent.returncode == 130
        assert last == f"bakeoff: {tmp_path / 'out'}: interrupted; what is done is kept, and the same command goes on"
        assert saved == logs
    else:
        assert parent.returncode == 2
        assert "its process was killed; is the machine out of memory? Give the same command again, or fewer" in last
        assert len(saved) == 1
    assert _running(parent.pid) == []
    quietly(plan, tmp_path / "out", jobs=2)
    quietly(plan, tmp_path / "whole", jobs=1)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def _children(process):
    return [int(each) for each in _told("--ppid", process)]


def _running(session):
    """What still runs of a session whose first process has ended."""
    return _told("--sid", session)


def _told(option, process):
    return subprocess.run(["ps", "-o", "pid=", option, str(process)], capture_output=True, text=True).stdout.split()


def test_a_plan_that_was_refused_may_have_another_budget_once_it_is_mended(corpus, tmp_path, capsys):
    """Nothing was trained by the first budget."""
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "the river\ta\nthe stone\tb\n" * 8)
    task = {"name": "t", "train": str(tmp_path / "rows.tsv"), "text_column": "txt", "label_column": "label"}
    for steps in (4, 5):
        plan = {"recipes": ["bert-tiny"], "seeds": 1, "corpus": str(corpus.path), "budget": f"steps = {steps}"}
        (tmp_path / "plan.yaml").write_text(json.dumps({**plan, "tasks": [task]}))
        assert command(["compare", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 2
        assert "no column 'txt'" in capsys.readouterr().err.splitlines()[-1]
