"""`bakeoff check`: directories that are whole, damaged, unfinished, or from before there were checksums."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import bakeoff
from bakeoff import checksums
from bakeoff.checking import check
from bakeoff.cli import run as command_line
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.runs.run import Run
from bakeoff.trainer import loop
from bakeoff.training.pretrain import pretrain
from tests.conftest import shrink


@pytest.fixture
def copy(corpus, tmp_path):
    return shutil.copytree(corpus.path, tmp_path / "corpus")


@pytest.fixture
def run(corpus, tmp_path):
    return pretrain(shrink("bert-tiny"), corpus.path, tmp_path / "run", progress=False, device="cpu").path


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


def printed(capsys, *arguments):
    status = command_line(["check", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_a_whole_corpus_is_told_part_by_part(copy, capsys):
    status, out, err = printed(capsys, copy)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines[:-2]] == [
        [name, "ok"] for name in ("corpus.json", "tokenizer.json", "train", "validation")
    ]
    assert lines[-2] == f"{copy}: a corpus; 12 of 12 files are what was written"
    assert re.fullmatch(r".* free on the disk, .* open files", lines[-1])
    found = bakeoff.check(copy)
    assert (found.kind, found.problems) == ("corpus", [])
    assert sum(group.bytes for group in found.groups) == sum(
        file.stat().st_size for file in copy.iterdir() if file.name != checksums.NAME
    )


def test_all_that_is_damaged_is_named_and_the_status_is_2(copy, capsys):
    flip(copy / "train.tokens")
    flip(copy / "validation.words")
    status, out, err = printed(capsys, copy)
    assert status == 2
    assert err.count("\n") == 1
    assert err.startswith(f"bakeoff: {copy / 'train.tokens'}: damaged: it is not what was written")
    assert err.endswith("(and 1 more, above)\n")
    assert f"{copy / 'validation.words'}: damaged" in out
    status, out, err = printed(capsys, copy, "--json")
    assert status == 2
    groups = {group["name"]: group for group in json.loads(out)["groups"]}
    assert [name for name, group in groups.items() if group["problems"]] == ["train", "validation"]


def test_damage_that_left_size_and_times_as_they_were_is_found(copy, tmp_path, monkeypatch):
    """As where a disk forgets a bit, of a file whose hash was remembered."""
    monkeypatch.setattr("bakeoff.digests.REMEMBERED_FROM", 1)
    monkeypatch.setattr("bakeoff.digests.SETTLED", -1e9)
    monkeypatch.setattr("bakeoff.digests._here", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert Corpus.open(copy).train
    file = copy / "train.tokens"
    os.utime(file, (1, 1))
    monkeypatch.setattr("bakeoff.digests._key", lambda path: (os.path.abspath(path), path.stat().st_size, 1, 1))
    assert Corpus.open(copy).train
    flip(file)
    os.utime(file, (1, 1))
    assert Corpus.open(copy).train  # remembered
    assert len(check(copy).problems) == 1
    with pytest.raises(UserError, match=r"train\.tokens: damaged"):
        assert Corpus.open(copy).train  # and this too


def test_a_run_from_before_there_were_checksums_is_read_and_nothing_is_claimed(run, capsys):
    (run / checksums.NAME).unlink()
    status, out, err = printed(capsys, run)
    assert (status, err) == (0, "")
    assert "it has no list of checksums, and no more is known" in out.splitlines()[-2]
    (run / "model.safetensors").rename(run.parent / "kept")
    status, _, err = printed(capsys, run)
    assert (status, err) == (2, f"bakeoff: {run / 'model.safetensors'}: missing; restore it from a copy\n")
    (run.parent / "kept").rename(run / "model.safetensors")
    (run / "summary.json").write_text('{"steps": "many"}')
    status, _, err = printed(capsys, run)
    assert status == 2
    assert f"{run / 'summary.json'}: not what Bakeoff writes there:" in err
    assert "steps: input should be a valid integer, not 'many'" in err
    assert "seed: this key is required" in err


def test_a_corpus_from_before_there_were_lists_is_compared_with_its_manifest(copy, capsys):
    (copy / checksums.NAME).unlink()
    status, out, _ = printed(capsys, copy)
    assert status == 0
    assert "11 of 12 files are what was written, of the other 1 no checksums were kept" in out
    flip(copy / "train.sentences")
    status, _, err = printed(capsys, copy)
    assert status == 2
    assert "train.sentences: damaged" in err
    with pytest.raises(UserError, match=r"train\.sentences: damaged"):
        Corpus.open(copy).split("train")
    assert len(Corpus.open(copy).validation.tokens)


def test_an_unfinished_run_is_checked_as_far_as_it_has_come(corpus, tmp_path, capsys, monkeypatch):
    exact = loop.optimize

    def fails(unit, parts, index):
        if index == 4:
            raise RuntimeError
        return exact(unit, parts, index)

    monkeypatch.setattr(loop, "optimize", fails)
    recipe = shrink("bert-tiny", **{"training.checkpoint_minutes": 1e-9})
    with pytest.raises(RuntimeError):
        pretrain(recipe, corpus.path, tmp_path / "run", progress=False, device="cpu")
    status, out, _ = printed(capsys, tmp_path / "run")
    assert status == 0
    assert "checkpoints/step-00000004  ok" in out
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:  # after the checkpoint
        file.write('{"kind": "tra')
    assert printed(capsys, tmp_path / "run")[0] == 0
    flip(tmp_path / "run" / "metrics.jsonl")
    status, _, err = printed(capsys, tmp_path / "run")
    assert status == 2
    assert "metrics.jsonl: damaged: the lines up to step 4" in err
    assert "step-00000004 to go on from the checkpoint before" in err


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_finishes_is_whole_and_resumes(corpus, tmp_path, monkeypatch):
    """A kill before each of the files that its end puts in place."""
    recipe = shrink("bert-tiny", **{"training.checkpoint_minutes": 1e-9, "training.budget": {"steps": 3}})
    whole = pretrain(recipe, corpus.path, tmp_path / "whole", progress=False, device="cpu").path
    finish, replace, left = Run.finish, Path.replace, []

    def counted(path, target):
        if left:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        return replace(path, target)

    for number in range(20):

        def finishes(*arguments, number=number):
            left.append(number)
            return finish(*arguments)

        run = tmp_path / f"run-{number}"
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", counted)
            patch.setattr(Run, "finish", finishes)
            try:
                pretrain(recipe, corpus.path, run, progress=False, device="cpu")
                break
            except KeyboardInterrupt:
                left.clear()
        assert check(run).problems == []
        pretrain(recipe, corpus.path, run, progress=False, device="cpu", resume=True)
        assert check(run).problems == []
        assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert number >= 4  # weights, card, list, summary


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("tokens", lambda numbers: numbers.__setitem__(5, 60_000), "holds the id 60000, there are 160"),
        ("tokens", lambda numbers: numbers.__setitem__(5, 160), "holds the id 160, there are 160"),
        ("sentences", lambda numbers: numbers.__setitem__(3, numbers[2]), "does not ascend"),
        ("sentences", lambda numbers: numbers.__setitem__(-1, 2**40), "instead of from 0 to"),
        ("documents", lambda numbers: numbers.__setitem__(0, -5), "goes from -5"),
        ("documents", lambda numbers: numbers.__setitem__(2, numbers[2] + 1), "begins within a sentence"),
        ("originals", lambda numbers: numbers.__setitem__(4, 2**50), "does not ascend one by one"),
        ("originals", lambda numbers: numbers.__setitem__(slice(4, None), numbers[4:] + 1), "does not ascend one"),
    ],
)
def test_a_strangers_numbers_are_looked_at_whatever_their_hashes_are(kind, change, problem, copy):
    file = copy / f"train.{kind}"
    numbers = np.fromfile(file, "uint16" if kind == "tokens" else "int64")
    change(numbers)
    numbers.tofile(file)
    manifest = json.loads((copy / "corpus.json").read_text())
    manifest["sha256"][file.name] = checksums.digest(file)
    (copy / checksums.NAME).unlink()
    (copy / "corpus.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=problem) as caught:
        assert Corpus.open(copy).train
    assert str(file) in str(caught.value)
    assert Corpus.open(copy).validation
    assert len(check(copy).problems) == 1


def test_an_unfinished_fine_tuning_is_not_said_to_be_missing(tmp_path, capsys):
    (tmp_path / ".task.unfinished").mkdir()
    (tmp_path / ".task.unfinished" / "asked.json").write_text("{}")
    status, _, err = printed(capsys, tmp_path / "task")
    assert (status, err) == (
        2,
        f"bakeoff: {tmp_path / 'task'}: this run has not finished; its command goes on with --resume\n",
    )


def test_what_is_none_of_these_is_refused(tmp_path, capsys):
    assert "no such directory" in printed(capsys, tmp_path / "absent")[2]
    status, _, err = printed(capsys, tmp_path)
    assert status == 2
    assert "this is no corpus, run, fine-tuned run, comparison or search" in err
