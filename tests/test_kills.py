"""A kill before any change of a file: the same command, or the one that it advises, ends as if nothing had been."""

import hashlib
import os
import signal
import sys

import pytest
import torch

from bakeoff.cli import run as command_line
from bakeoff.comparison import execution
from tests.conftest import shrink
from tests.test_damage import _one_thread, place  # noqa: F401

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CHANGES = {f"os.{name}" for name in ("chmod", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate")}
"""Names by which Python announces that files are changed, besides `open`."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Killer:
    """Counts the changes of files below a folder, and kills this process before one of them.

    With `torn` a file that is to be opened is there, and empty, when the process dies.
    """

    def __init__(self, folder, at, torn):
        self.folder, self.at, self.torn, self.count, self.quiet = str(folder), at, torn, 0, False

    def __call__(self, event, details):
        if self.quiet or (event != "open" and event not in CHANGES):
            return
        path = details[0]
        if isinstance(path, int) or (os.path.isabs(path) and not os.fspath(path).startswith(self.folder)):
            return
        if event == "open" and not (isinstance(details[2], int) and details[2] & WRITING):
            return
        self.count += 1
        if self.count == self.at:
            self.quiet = True
            if self.torn and event == "open" and details[2] & os.O_CREAT:
                os.close(os.open(path, details[2] & ~os.O_EXCL, 0o666))
            os.kill(os.getpid(), signal.SIGKILL)


def run(words, scratch, at=None, torn=False):
    """Run a command in a process of its own; returns its status, its last words, and its changes of files."""
    said = scratch.parent / "said"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 99
        try:
            with open(said, "wb") as file:
                os.dup2(file.fileno(), 2)
                os.dup2(file.fileno(), 1)
            sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # noqa: SIM115
            sys.stdin = open(words[0], encoding="utf-8") if words[0] else sys.stdin  # noqa: SIM115
            execution._report = lambda results, path: path.write_text("the report")
            killer = Killer(scratch, at, torn)
            sys.addaudithook(killer)
            status = command_line([str(word) for word in words[1:]])
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(writer, str(killer.count).encode())
        finally:
            os._exit(status)
    os.close(writer)
    _, ended = os.waitpid(child, 0)
    with os.fdopen(reader) as counted:
        count = int(counted.read() or 0)
    return os.waitstatus_to_exitcode(ended), said.read_text(encoding="utf-8"), count


def content(scratch):
    """The files of a result, each with a digest of what does not depend on the time."""
    exact = {".safetensors", ".tokens", ".sentences", ".npy", ".jsonl"}
    return {
        str(path.relative_to(scratch)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.suffix in exact and path.name != "metrics.jsonl"
        else None
        for path in sorted(scratch.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(scratch).parts)
    }


TASK = "--train {F}/rows.tsv --text-column text --label-column label --device cpu"
OPTIONS = "--option epochs=1 --option least_steps=0 --option evaluations=1"
PREPARE = "prepare {F}/text.jsonl --out {S}/out --vocabulary 100"
COMMANDS = {
    "pretrain": ["pretrain {F}/recipe.yaml --corpus {F}/corpus --out {S}/out --device cpu --average-last 2"],
    "tune": ["tune {F}/recipe.yaml --corpus {F}/corpus --out {S}/out --trials 2 --jobs 1 --device cpu"],
    "finetune": [f"finetune {{F}}/run {TASK} {OPTIONS} --out {{S}}/out"],
    "compare": ["compare {F}/plan.json --out {S}/out --jobs 1"],
    "prepare": [PREPARE],
    "overwrite": [PREPARE, PREPARE + " --overwrite --validation 10%"],
    "shards": [PREPARE + " --shard 1/2", PREPARE + " --shard 2/2", PREPARE + " --merge"],
    "pairs": ["prepare --source {F}/source.txt --target {F}/target.txt --out {S}/out --vocabulary 100"],
    "embed": ["embed {F}/run --out {S}/out.npy --device cpu < {F}/source.txt"],
    "predict": ["predict {F}/tuned --out {S}/out.jsonl --device cpu < {F}/source.txt"],
    "score": ["score {F}/run --out {S}/out.jsonl --device cpu < {F}/source.txt"],
    "export": ["export {F}/run --to hf --out {S}/out", "import {S}/out --out {S}/back"],
}
"""The commands of each verb; the last one is killed, the others come before it."""


def words_of(command, folder, scratch):
    command, _, stdin = command.partition(" < ")
    return [each.format(F=folder, S=scratch) for each in (stdin, *command.split())]


def goes_on(verb, folder, tmp_path, moments):
    """Kill a verb at these moments, each time from the start, and compare the end with one that was not killed."""
    *before, last = COMMANDS[verb]

    def begun(scratch):
        scratch.mkdir(parents=True)
        for each in before:
            assert run(words_of(each, folder, scratch), scratch)[0] == 0
        return words_of(last, folder, scratch)

    whole = tmp_path / "whole" / "place"
    status, said, count = run(begun(whole), whole)
    assert status == 0, said
    expected, modes = content(whole), {path.stat().st_mode & 0o777 for path in whole.rglob("*") if path.is_file()}
    assert modes == {0o644}, [
        path for path in whole.rglob("*") if path.is_file() and path.stat().st_mode & 0o777 != 0o644
    ]
    for at in moments(count):
        for torn in (False, True):
            where = f"killed before change {at} of {count}{', torn' if torn else ''}"
            scratch = tmp_path / f"{at}-{torn}" / "place"
            words = begun(scratch)
            assert run(words, scratch, at, torn)[0] == -signal.SIGKILL, where
            status, said, _ = run(words, scratch)
            assert "something" not in said, f"{where}: {said}"
            if status != 0 and "--resume" in said:
                status, said, _ = run([*words, "--resume"], scratch)
            exists = status == 2 and ("is there already" in said or "exists" in said or "holds" in said)
            assert status == 0 or exists, f"{where}: {said}"
            assert content(scratch) == expected, where


@pytest.fixture(scope="module")
def small(corpus, tmp_path_factory):
    """A corpus and a recipe of few steps."""
    folder = tmp_path_factory.mktemp("kills")
    os.symlink(corpus.path, folder / "corpus")
    (folder / "recipe.yaml").write_text(short().to_yaml(), encoding="utf-8")
    return folder


def short():
    changes = {"model.decoder.layers": 1, "training.batch": 2, "input.length": 16, "training.checkpoint_minutes": 1e-9}
    return shrink("gpt-tiny", **{"training.budget": {"steps": 3}, "training.validation_examples": 4, **changes})


@pytest.mark.parametrize("verb", ["pretrain", "tune"])
def test_a_kill_at_the_start_blocks_nothing(verb, small, tmp_path):
    torch.set_num_threads(1)
    goes_on(verb, small, tmp_path, lambda count: range(1, 20, 3))


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_kill_before_any_change_of_a_file_blocks_nothing(verb, place, tmp_path):  # noqa: F811
    if verb == "export":
        pytest.importorskip("transformers")
    text = [f"The {'river' if i % 2 else 'stone'} number {i} is old. It was found by the water." for i in range(300)]
    (place / "recipe.yaml").write_text(short().to_yaml(), encoding="utf-8")
    (place / "text.jsonl").write_text("".join(f'{{"text": "{each}"}}\n' for each in text), encoding="utf-8")
    for name in ("source", "target"):
        (place / f"{name}.txt").write_text("\n".join(text[:60]) + "\n", encoding="utf-8")
    goes_on(verb, place, tmp_path, lambda count: range(1, count + 1))


def test_nothing_of_a_stranger_is_taken_for_an_unfinished_start(small, tmp_path):
    for names in (["tokenizer.json"], [".bakeoff-begun", "mine.txt"], ["tokenizer.json", "environment.json"]):
        out = tmp_path / "-".join(names) / "out"
        out.mkdir(parents=True)
        for name in names:
            (out / name).write_text("mine", encoding="utf-8")
        words = words_of(COMMANDS["pretrain"][0], small, out.parent)
        status, said, _ = run(words, out.parent)
        assert status == 2
        assert "holds something else already; choose another --out" in said
        assert {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()} == dict.fromkeys(names, "mine")
