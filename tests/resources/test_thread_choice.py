"""A look at how many threads suit a training: with steps of known length, and with trainings."""

import json
import time

import pytest
import torch
from tests.conftest import shrink

from bakeoff.cli import run
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.resources import thread_choice
from bakeoff.resources.thread_choice import SHARE, quickest
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.training.pretrain import pretrain

RECIPE = shrink("bert-tiny")


@pytest.fixture
def two(monkeypatch):
    """One thread, or two."""
    monkeypatch.setattr(thread_choice, "candidates", lambda: [1, 2])


@pytest.fixture
def generous(monkeypatch, two):
    """A look is made however short the training is."""
    monkeypatch.setattr(thread_choice, "SHARE", 1e9)
    monkeypatch.setattr(thread_choice, "SECONDS", 0.05)


class Steps:
    """Steps that take so many seconds with so many threads."""

    def __init__(self, seconds):
        self.seconds, self.made = seconds, []

    def __call__(self, number):
        self.made.append(torch.get_num_threads())
        time.sleep(self.seconds[torch.get_num_threads()])


@pytest.mark.parametrize(
    ("with_two", "best"),
    [
        pytest.param(0.01, 2, id="much faster"),
        pytest.param(0.019, 1, id="a little faster"),
        pytest.param(0.1, 1, id="disturbed", marks=pytest.mark.slow),
    ],
)
def test_several_threads_have_to_be_clearly_faster(two, with_two, best):
    before, state = torch.get_num_threads(), torch.random.get_rng_state()
    steps = Steps({1: 0.02, 2: with_two})
    assert quickest(lambda: steps, 1.0, lambda seconds: 600.0, default=2) == best
    assert torch.get_num_threads() == before
    assert torch.equal(torch.random.get_rng_state(), state)
    assert {1, 2} == set(steps.made)


@pytest.mark.parametrize("total", [0, 1, 3, 10, 100])
def test_a_look_takes_its_share_at_most_or_is_given_up(two, total):
    steps, began = Steps({1: 0.01, 2: 0.01}), time.monotonic()
    found = quickest(lambda: steps, 1.0, lambda seconds: total * seconds, default=2)
    assert found == 2  # the default, for a hundred steps of the training pay for two
    assert len(steps.made) <= 2
    assert time.monotonic() - began < 1


def test_large_steps_are_not_even_tried(two):
    def begin():
        raise AssertionError

    assert quickest(begin, 1e15, lambda seconds: 100 * seconds, default=1) == 1


def test_a_longer_training_allows_a_look_of_a_second_or_so(two):
    steps, began = Steps({1: 0.02, 2: 0.01}), time.monotonic()
    assert quickest(lambda: steps, 1.0, lambda seconds: 3600.0, default=1) == 2
    assert 0.8 < time.monotonic() - began < 3
    assert SHARE * 3600 > 3


def weights(run):
    return run.weights_file().read_bytes()


def test_a_look_leaves_a_training_as_it_is_and_the_run_keeps_what_it_found(corpus, tmp_path, generous):
    looked = pretrain(RECIPE, corpus.path, tmp_path / "looked", device="cpu", threads="auto", progress=False)
    threads = looked.environment["threads"]
    assert threads in (1, 2)
    again = pretrain(RECIPE, corpus.path, tmp_path / "again", device="cpu", threads=threads, progress=False)
    assert weights(again) == weights(looked)


@pytest.mark.slow
def test_a_resumed_run_keeps_its_threads(corpus, tmp_path, monkeypatch):
    whole = pretrain(RECIPE, corpus.path, tmp_path / "whole", device="cpu", threads=2, progress=False)
    out, before = tmp_path / "out", torch.get_num_threads()
    pretrain(RECIPE, corpus.path, out, device="cpu", threads=2, until=5, progress=False)
    assert torch.get_num_threads() == before
    monkeypatch.setattr("bakeoff.training.settling.quickest", None)
    resumed = pretrain(None, None, out, device="cpu", threads="auto", resume=True, progress=False)
    assert resumed.environment["threads"] == 2
    assert weights(resumed) == weights(whole)


def test_minutes_are_measured_with_the_threads_that_were_found(corpus, tmp_path, monkeypatch):
    seen = []

    def measured(*arguments, **options):
        seen.append(torch.get_num_threads())
        raise UserError("measured")

    monkeypatch.setattr("bakeoff.training.settling.quickest", lambda *arguments: 3)
    monkeypatch.setattr("bakeoff.training.resolution.step_times", measured)
    with pytest.raises(UserError, match="measured"):
        pretrain(RECIPE, corpus.path, tmp_path / "out", budget=Budget(minutes=1), device="cpu", threads="auto")
    assert seen == [3]


def test_fine_tuning_looks_too(corpus, tmp_path, generous):
    rows = "".join(f"the {'old' if i % 2 else 'quiet'} river {i % 5}\t{i % 2}\n" for i in range(60))
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + rows)
    files = dict.fromkeys(("train", "dev", "test"), tmp_path / "rows.tsv")
    task = ClassificationConfig(name="mood", text_column="text", label_column="label", **files)

    def tuned(name, threads):
        config = FinetuneConfig(epochs=1, least_steps=0)
        options = {"config": config, "tokenizer": corpus.path, "device": "cpu", "progress": False, "threads": threads}
        finetune(RECIPE, task, tmp_path / name, **options)
        found = json.loads((tmp_path / name / "environment.json").read_text())["threads"]
        return found, (tmp_path / name / "model.safetensors").read_bytes()

    threads, made = tuned("looked", "auto")
    assert threads in (1, 2)
    assert tuned("again", threads) == (threads, made)


@pytest.mark.parametrize("text", ["0", "some", "-1"])
def test_what_is_no_number_of_threads_is_refused(corpus, tmp_path, capsys, text):
    arguments = ["pretrain", "bert-tiny", "--corpus", str(corpus.path), "--out", str(tmp_path / "run")]
    assert run([*arguments, f"--threads={text}"]) == 2
    assert f"--threads {text}: give a number, or auto" in capsys.readouterr().err
    for wrong in (0, -1, "two", 1.5):
        with pytest.raises(UserError, match=f"--threads {wrong}: give a whole number from 1 on"):
            pretrain(RECIPE, corpus.path, tmp_path / "run", device="cpu", threads=wrong)
