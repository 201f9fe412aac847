"""Fine-tuning in micro-batches that fit into memory: as many items as the count says, and fewer where it is short."""

import contextlib
import json

import pytest
import torch
from safetensors.torch import load_file
from tests.shortages import run_out_in_optimizer

from bakeoff.errors import UserError
from bakeoff.resources import micro_batch as sizes
from bakeoff.tasks import finetune as finetuning
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting import fitting
from bakeoff.tasks.fitting.memory import fitting_items
from bakeoff.tasks.fitting.settling import settle
from bakeoff.tasks.fitting.starting_point import open_source
from bakeoff.tasks.kinds.classification import Classification
from bakeoff.yaml_files import parse_yaml

AUTO = {"batch": 16, "epochs": [1], "learning_rate": [1e-3], "evaluations": 2, "model_dropout": 0.1}
OPTIONS = {"device": "cpu", "progress": False}


@pytest.fixture
def memory(monkeypatch):
    """Makes a pass over more items than are set run out of memory, from a call on; the count says that 16 fit."""
    monkeypatch.setattr(finetuning, "fitting_items", lambda settled: None)
    loss, calls = Classification.loss, []

    def holds(items, after=0):
        def limited(self, scores, all_items, chosen):
            calls.append(1)
            if len(calls) > after and len(chosen) > items:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return loss(self, scores, all_items, chosen)

        calls.clear()
        monkeypatch.setattr(Classification, "loss", limited)

    return holds


def weights(path):
    return load_file(path / "model.safetensors")


def same(one, other):
    return all(torch.equal(one[key], other[key]) for key in one)


def made(run, task, out, size="auto", **changes):
    config = FinetuneConfig(micro_batch=size, **{**AUTO, **changes})
    return finetune(run, task, out, config=config, **OPTIONS)


@pytest.mark.slow
def test_it_is_that_of_the_smaller_micro_batches_and_says_so(memory, run, task, tmp_path):
    made(run, task, tmp_path / "small", 4)
    memory(items=5)
    made(run, task, tmp_path / "run")
    assert same(weights(tmp_path / "run"), weights(tmp_path / "small"))
    tuned = FinetunedRun.open(tmp_path / "run")
    assert tuned.config.micro_batch == 4
    changes = tuned.environment["micro_batches"]
    assert changes == [{"from_step": 0, "micro_batch": 8}, {"from_step": 0, "micro_batch": 4}]


@pytest.mark.slow
def test_later_trainings_keep_the_size(memory, run, task, tmp_path):
    rates = {"learning_rate": [1e-3, 2e-3]}
    small = made(run, task, tmp_path / "small", 8, **rates)
    memory(items=8)
    result = made(run, task, tmp_path / "run", **rates)
    assert [each.score for each in result.trials] == [each.score for each in small.trials]
    assert len(FinetunedRun.open(tmp_path / "run").environment["micro_batches"]) == 1


@pytest.mark.parametrize("number", [0, 20])
def test_where_weights_have_moved_the_training_begins_anew(memory, run, task, tmp_path, monkeypatch, number):
    """In the first training or, of 15 steps each, in the second one, whose lines are written once."""
    rates = {"learning_rate": [1e-3, 2e-3]}
    made(run, task, tmp_path / "small", 8 if number == 0 else None, **rates)
    memory(items=16)
    run_out_in_optimizer(monkeypatch, number)
    made(run, task, tmp_path / "run", **rates)
    lines, expected = (
        [
            {key: value for key, value in json.loads(line).items() if key != "seconds"}
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("run", "small")
    )
    if number == 0:
        assert same(weights(tmp_path / "run"), weights(tmp_path / "small"))
        assert lines == expected
    keys = ("learning_rate", "step")
    assert [[line[key] for key in keys] for line in lines] == [[line[key] for key in keys] for line in expected]
    assert lines[:2] == expected[:2]


def test_a_stopped_one_goes_on_with_its_size(memory, run, task, tmp_path, monkeypatch):
    memory(items=8)
    made(run, task, tmp_path / "whole")
    evaluate, calls = fitting.Fitting.evaluate, []

    def stopped(self, position):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return evaluate(self, position)

    monkeypatch.setattr("bakeoff.tasks.fitting.trials.SAVED_EVERY", 0.0)
    memory(items=8)
    monkeypatch.setattr(fitting.Fitting, "evaluate", stopped)
    config = FinetuneConfig(micro_batch="auto", **AUTO)
    with pytest.raises(BaseException, match="stopped"):
        finetune(run, task, tmp_path / "run", config=config, **OPTIONS)
    monkeypatch.setattr(fitting.Fitting, "evaluate", evaluate)
    memory(items=8)
    finetune(run, task, tmp_path / "run", config=config, resume=True, **OPTIONS)
    assert same(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    assert len(FinetunedRun.open(tmp_path / "run").environment["micro_batches"]) == 1
    finetune(run, task, tmp_path / "run", config=config, resume=True, **OPTIONS)  # finished: the same request


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.slow), "cuda"])
def test_the_count_grows_with_the_memory_and_cuts_equal_parts(run, task, monkeypatch, device):
    settled = settle(open_source(run.path, None), task, FinetuneConfig(micro_batch="auto", **AUTO), 0, "cpu")
    on = settled.placement._replace(device=torch.device(device))
    settled = settled._replace(setting=settled.setting._replace(placement=on))

    def fitting(limit):
        monkeypatch.setattr(sizes, "free_memory", lambda: limit)
        monkeypatch.setattr(sizes, "memory_of", lambda _: limit)
        return fitting_items(settled)

    with pytest.raises(UserError, match=r"a single item of the task takes 0.0 GB.*--option length=N"):
        fitting(1 << 10)
    fits = []
    for quarters in range(72, 124, 3):
        with contextlib.suppress(UserError):
            fits.append(fitting(2 ** (quarters / 4)) or 16)
    assert fits == sorted(fits)
    assert min(fits) < max(fits) == 16
    assert set(fits) <= {1, 2, 3, 4, 6, 8, 16}


@pytest.mark.parametrize("size", ["most", 0, -3, 2.5, [4]])
def test_a_size_of_another_kind_is_refused_in_one_line(size):
    with pytest.raises(UserError, match=r"micro_batch: give a number of rows above 0, or auto$"):
        FinetuneConfig.parse({"micro_batch": size}, "test")


def test_the_settings_have_the_number(run, task, tmp_path, monkeypatch):
    monkeypatch.setattr(finetuning, "fitting_items", lambda settled: 8)
    made(run, task, tmp_path / "run")
    assert parse_yaml((tmp_path / "run" / "task.yaml").read_text(), "test")["finetune"]["micro_batch"] == 8
