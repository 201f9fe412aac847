"""A kill before any change of a file: the same command, or the one that it advises, ends as if nothing had been."""

import os
import signal
from functools import partial

import pytest
import torch

from bakeoff.comparison import execution
from bakeoff.demo import run as demo
from bakeoff.preparation.prepare import prepare
from bakeoff.tasks.fitting import trials
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.trainer import save_plan
from bakeoff.training.pretrain import pretrain
from bakeoff.tuning import outputs
from tests.conftest import shrink
from tests.killing import COMMANDS, NEEDED, begun, content, run, small_demo, words_of
from tests.test_damage import _one_thread, place  # noqa: F401

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PARTS = 4
"""Tests into which the moments of a verb are dealt, each of which takes a minute or two."""

ALL = (0o022, 0o077)
"""Masks of permissions: for everybody to read, and for nobody else."""


def goes_on(verb, folder, tmp_path, moments):
    """Kill a verb at these moments, each time from the start, and compare the end with one that was not killed."""
    whole = tmp_path / "whole" / "place"
    status, said, kinds = run(begun(verb, folder, whole), whole)
    assert status == 0, said
    expected = content(whole)
    for at in moments(len(kinds)):
        for torn in [False, True][: 1 + (kinds[at - 1] == "m")]:
            where = f"killed before change {at} of {len(kinds)}{', torn' if torn else ''}"
            scratch = tmp_path / f"{at}-{torn}" / "place"
            words = begun(verb, folder, scratch)
            assert run(words, scratch, at, torn)[0] == -signal.SIGKILL, where
            status, said, _ = run(words, scratch)
            assert "something" not in said, f"{where}: {said}"
            if status != 0 and "--resume" in said and "--resume" not in words:
                status, said, _ = run([*words, "--resume"], scratch)
            exists = status == 2 and ("is there already" in said or "exists" in said or "holds" in said)
            assert status == 0 or exists, f"{where}: {said}"
            assert content(scratch) == expected, where


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No drawing, and checkpoints at every chance."""
    monkeypatch.setattr(execution, "_report", lambda results, path: path.write_text("the report"))
    monkeypatch.setattr(outputs, "write_report", lambda results, recipe, path: path.write_text("the report"))
    monkeypatch.setattr(trials, "SAVED_EVERY", 0.0)
    monkeypatch.setattr(trials, "SAVED_BETWEEN_EVALUATIONS", 0.0)
    monkeypatch.setattr(save_plan, "FIRST_CHECKPOINT", 0.0)


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


@pytest.fixture(scope="module")
def full(place):  # noqa: F811
    """All that the commands read."""
    text = [f"The {'river' if i % 2 else 'stone'} number {i} is old. It was found by the water." for i in range(300)]
    (place / "recipe.yaml").write_text(short().to_yaml(), encoding="utf-8")
    (place / "text.jsonl").write_text("".join(f'{{"text": "{each}"}}\n' for each in text), encoding="utf-8")
    gpt2 = shrink("gpt2-tiny", **{"training.budget": {"steps": 1}, "training.validation_examples": 4})
    prepare(place / "text.jsonl", place / "bytes", tokenizer=TokenizerConfig(kind="byte_bpe", size=300), workers=0)
    pretrain(gpt2, place / "bytes", place / "gpt2", progress=False, device="cpu")
    for name in ("source", "target"):
        (place / f"{name}.txt").write_text("\n".join(text[:60]) + "\n", encoding="utf-8")
    return place


@pytest.fixture
def ready(full, monkeypatch):
    """The same, with a demo of it."""
    write_files, plan = small_demo(full)
    monkeypatch.setattr(demo, "write_files", write_files)
    monkeypatch.setattr(demo, "demo_plan", plan)
    monkeypatch.setattr(demo, "compare", partial(demo.compare, jobs=1))
    monkeypatch.setattr(demo, "TOKENIZER", TokenizerConfig(kind="wordpiece", size=100))
    return full


@pytest.mark.parametrize(("verb", "moments"), [("pretrain", (8, 14)), ("tune", (17,))])
def test_a_kill_at_the_start_blocks_nothing(verb, moments, small, tmp_path):
    torch.set_num_threads(1)
    goes_on(verb, small, tmp_path, lambda count: moments)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_kill_before_any_change_of_a_file_blocks_nothing(verb, part, ready, tmp_path):
    if verb in NEEDED:
        pytest.importorskip(NEEDED[verb])
    goes_on(verb, ready, tmp_path, lambda count: range(1 + part, count + 1, PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("mask", ALL, ids=oct)
@pytest.mark.parametrize("verb", COMMANDS)
def test_all_that_a_verb_writes_follows_the_umask(verb, mask, ready, tmp_path):
    if verb in NEEDED:
        pytest.importorskip(NEEDED[verb])
    if any(command.startswith("copy ") for command in COMMANDS[verb]):
        pytest.skip("a copy has the permissions of its original")
    scratch = tmp_path / "place"
    before = os.umask(mask)
    try:
        status, said, _ = run(begun(verb, ready, scratch), scratch)
    finally:
        os.umask(before)
    assert status == 0, said
    found = {path: path.stat().st_mode & 0o777 for path in scratch.rglob("*") if not path.is_symlink()}
    assert len(found) > 0
    assert found == {path: (0o777 if path.is_dir() else 0o666) & ~mask for path in found}


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_what_somebody_else_has_put_in_the_place_of_an_output_stays(verb, ready, tmp_path):
    if verb in NEEDED:
        pytest.importorskip(NEEDED[verb])
    whole = tmp_path / "whole" / "place"
    assert run(begun(verb, ready, whole), whole)[0] == 0
    out = next(path for path in whole.iterdir() if path.name.split(".")[0] == "out")
    inside = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    for name in ["", *inside]:
        scratch = tmp_path / (name or "file") / "place"
        mine = scratch / out.name / name
        mine.parent.mkdir(parents=True)
        mine.write_text("mine", encoding="utf-8")
        if (whole / "exported").exists():
            (scratch / "exported").symlink_to(whole / "exported")
        status, said, _ = run(words_of(COMMANDS[verb][-1], ready, scratch), scratch)
        assert status == 2, (name, said)
        *remarks, error = said.splitlines()
        assert error.startswith("bakeoff: "), (name, said)
        assert len(remarks) <= 1, (name, said)
        assert [path for path in (mine.parent, *mine.parent.rglob("*")) if path.is_file()] == [mine], name
        assert mine.read_text(encoding="utf-8") == "mine"


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
