"""Launchers of several processes are noticed by everything that trains, from the shell and from Python."""

import re

import pytest

import bakeoff
from bakeoff.cli import run as command_line
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError
from bakeoff.training.stages import require_shares


@pytest.mark.parametrize(
    "command",
    [
        ["pretrain", "bert-tiny", "--corpus", "CORPUS", "--budget", "steps=1"],
        [
            "finetune",
            "bert-tiny",
            "--corpus",
            "CORPUS",
            "--train",
            "x.tsv",
            "--text-column",
            "a",
            "--label-column",
            "b",
        ],
        ["tune", "bert-tiny", "--corpus", "CORPUS", "--budget", "steps=50"],
    ],
)
@pytest.mark.parametrize("name", ["WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"])
def test_several_processes_of_one_training_are_refused(name, command, corpus, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv(name, "2")
    command = [str(corpus.path) if each == "CORPUS" else each for each in command]
    assert command_line([*command, "--out", str(tmp_path / "out")]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert f"one of 2 processes ({name}, set by" in line
    assert f"env -u {name}" in line
    assert not list(tmp_path.iterdir())


def test_also_from_python_and_not_for_a_single_process(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    with pytest.raises(UserError, match="one of 8 processes"):
        bakeoff.pretrain(bakeoff.load_recipe("bert-tiny"), corpus.path, tmp_path / "run")
    with pytest.raises(UserError, match="one of 8 processes"):
        bakeoff.compare("plan.yaml", tmp_path / "comparison")
    for alone in ("1", "", "many"):
        monkeypatch.setenv("WORLD_SIZE", alone)
        with pytest.raises(UserError, match="no such corpus"):
            bakeoff.pretrain(bakeoff.load_recipe("bert-tiny"), tmp_path / "none", tmp_path / "run")


@pytest.mark.parametrize("verb", ["prepare", "score", "compare", "serve", "export"])
def test_a_verb_that_processes_do_not_share_is_refused_under_torchrun(verb, monkeypatch, capfd):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert command_line([verb, "a", "b"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert f"{verb}: torchrun has started 2 processes" in line
    assert f"start `bakeoff {verb}` alone" in line


@pytest.mark.parametrize(
    ("batch", "micro_batch", "size", "advice"),
    [
        (32, None, 2, "--set training.micro_batch=16, or start 1 at most"),
        (32, 16, 3, "32 rows are 2 micro-batches; give --set training.micro_batch=10, or start 2 at most"),
        (2, 1, 3, "start 2 at most"),
        ({"tokens": 400}, {"tokens": 200}, 4, "{tokens: 100}', or start 2 at most"),
    ],
)
def test_more_processes_than_micro_batches_are_refused_with_the_setting(batch, micro_batch, size, advice):
    changes = {"training.batch": batch, "training.micro_batch": micro_batch}
    inputs = {} if isinstance(batch, int) else {"input": {"format": "doc_sentences", "length": 32}}
    objective = [bakeoff.load_recipe("bert-tiny").objective[0].model_dump(mode="json")]
    recipe = bakeoff.load_recipe("bert-tiny", {**changes, **inputs, "objective": objective})
    require_shares(Processes(0, 1), recipe, begun=False)
    with pytest.raises(UserError, match=re.escape(advice)):
        require_shares(Processes(0, size), recipe, begun=False)
    with pytest.raises(UserError, match=r"micro-batch(es)?; start \d at most$"):
        require_shares(Processes(0, size), recipe, begun=True)
