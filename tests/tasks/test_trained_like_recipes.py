"""What fine-tuning shares with pre-training: optimizers, schedules, micro-batches, batches ahead, running averages."""

import copy
import json
import random
import signal
import threading

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import without_dropout
from tests.interrupting import interrupt_at

from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization import optimizers, schedules
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.tasks.fitting.settling import settle
from bakeoff.tasks.fitting.starting_point import new_head, open_source
from bakeoff.tasks.fitting.trial import FittingTrial
from bakeoff.tasks.registry import TASKS
from bakeoff.trainer import loop
from bakeoff.trainer.step import optimize

QUIET = {"device": "cpu", "progress": False}
BRIEF = {"learning_rate": [1e-3], "epochs": [2], "least_steps": 0, "batch": 16, "patience": None}
OPTIMIZERS, SCHEDULES = [*optimizers.OPTIMIZERS], [*schedules.SCHEDULES]
WORDS = ["apple", "hammer", "town", "bavor", "dosel", "kitip"]

TEXT = {"text_column": "text", "label_column": "place"}
KINDS = {
    "classification": (TEXT, {}),
    "weighted": ({**TEXT, "kind": "classification", "class_weights": {"0": 3.0}}, {}),
    "smoothed": ({**TEXT, "kind": "classification", "label_smoothing": 0.1}, {}),
    "both": ({**TEXT, "kind": "classification", "label_smoothing": 0.1, "class_weights": "balanced"}, {}),
    "next token": ({**TEXT, "kind": "classification"}, {"language_model": 0.5}),
    "windows": ({**TEXT, "kind": "classification", "text_column": "long"}, {"truncate": "windows"}),
    "regression": ({"text_column": "text", "label_column": "number"}, {}),
    "multilabel": ({"text_column": "text", "label_column": "labels"}, {}),
    "tagging": ({"text_column": "words", "label_column": "tags"}, {}),
    "choice": ({"text_column": "text", "choices": "choices", "label_column": "place"}, {}),
    "question_answering": ({"text_column": "question", "pair_column": "text", "label_column": "answers"}, {}),
    "sequence_to_sequence": ({"text_column": "text", "label_column": "target"}, {}),
}
"""Tasks of every kind, and of every loss that is no plain mean over rows: the task's settings and the training's."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows that every kind of task can read; items have one to nine words, so that targets are unevenly many."""
    draw, lines = random.Random(0), []
    for number in range(24):
        words = draw.choices(WORDS, k=draw.randint(1, 9))
        lines.append(
            {
                "text": " ".join(words),
                "long": " ".join(words * (1 + 3 * (number % 3))),
                "words": words,
                "tags": ["B-X" if word == "apple" else "O" for word in words],
                "place": number % 3 % 2,
                "number": len(words) + 0.5,
                "labels": [word for word in WORDS[:3] if word in words],
                "choices": [*words[:1], "saw", "drill"][: 2 + number % 2],
                "question": "which",
                "answers": {"text": words[:1], "answer_start": [0]} if number % 4 else {"text": [], "answer_start": []},
                "target": " ".join(words[::-1]),
            }
        )
    path = tmp_path_factory.mktemp("kinds") / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def fitting_of(name, source, rows, **changes):
    columns, settings = KINDS[name]
    task = TASKS[columns.get("kind", name)](**columns, train=rows, dev=rows, test=rows)
    config = FinetuneConfig(**{**BRIEF, "dropout": 0.0, "length": 24, **settings, **changes})
    settled = settle(source, task, config, 0, "cpu")
    train = settled.splits["train"]
    trial = FittingTrial(config.learning_rate[0], 2)
    return Fitting(new_head(settled.source, settled.setting)[0], train, train, trial, settled.setting)


def test_every_kind_of_task_is_among_them():
    assert {settings.get("kind", name) for name, (settings, _) in KINDS.items()} == set(TASKS)


@pytest.mark.parametrize("name", KINDS)
def test_a_batch_has_one_loss_and_one_gradient_however_it_is_cut(name, rows, recipe, causal_recipe, corpus):
    model = causal_recipe if name in ("next token", "sequence_to_sequence") else recipe
    source = open_source(without_dropout(model).changed({"training.precision": "float32"}), corpus)
    found = []
    for size in (None, 16, 5, 1):
        unit = fitting_of(name, source, rows, micro_batch=size, optimizer="sgd", weight_decay=0.0, clip=1e9)
        unit.begin()
        whole = next(step for step in range(3) if sum(len(each.chosen) for each in unit.batches(step)) == 16)
        micro_batches = unit.batches(whole)
        assert len(micro_batches) == (1 if size is None else -(-16 // size))
        means = optimize(unit, micro_batches, 0)
        found.append(({key: float(mean) for key, mean in means.items()}, copy.deepcopy(unit.module.state_dict())))
    (means, weights), *others = found
    assert means["gradient_norm"] > 0
    for other_means, other_weights in others:
        assert other_means == pytest.approx(means, rel=1e-4)
        for key, tensor in weights.items():
            torch.testing.assert_close(other_weights[key], tensor, atol=1e-6, rtol=1e-4)


def stopped(monkeypatch, step, call):
    """A training that a signal stops in a step."""
    with monkeypatch.context() as patch:
        interrupt_at(patch, step - 1, signal.SIGTERM)
        with pytest.raises(Interrupted, match=f"stopped at step {step};"):
            call()


@pytest.mark.parametrize(
    ("optimizer", "schedule"),
    [(kind, SCHEDULES[place % len(SCHEDULES)]) for place, kind in enumerate(OPTIMIZERS)]
    + [(OPTIMIZERS[0], kind) for kind in SCHEDULES[len(OPTIMIZERS) :]],
)
def test_every_optimizer_and_schedule_learns_and_goes_on_to_the_same_bits(
    optimizer, schedule, run, task, tmp_path, monkeypatch
):
    """With a running average, micro-batches and rates by layer, which all have to be as they were."""
    few = task.model_copy(update={"train_rows": 40, "dev": task.dev})
    settings = {"micro_batch": 5, "layer_decay": 0.9, "running_average": 0.5, "freeze": 0, "evaluations": 3}
    config = FinetuneConfig(**BRIEF, **settings, optimizer=optimizer, schedule=schedule)
    whole = finetune(run, few, tmp_path / "whole", config=config, **QUIET)
    out = tmp_path / "out"
    stopped(monkeypatch, 4, lambda: finetune(run, few, out, config=config, **QUIET))
    found = finetune(run, few, out, config=config, resume=True, **QUIET)
    assert (found.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    before, after = (load_file(path / "model.safetensors") for path in (run.path, found.path))
    moved = {name for name in before if name in after and not torch.equal(before[name], after[name])}
    assert moved
    assert not any(name.startswith("model.embedding") for name in moved)  # which is frozen
    saved = FinetunedRun.open(found.path).config
    assert (saved.optimizer.kind, saved.schedule.kind) == (optimizer, schedule)
    assert saved.model_dump(mode="json")["optimizer"].keys().isdisjoint({"lr", "weight_decay"})


def test_the_run_has_the_running_mean_of_its_weights(run, task, tmp_path, monkeypatch):
    """a <- a + (w - a) / n after each step, from the weights that the training begins with."""
    own, seen = loop.optimize, []

    def watched(unit, parts, index):
        if not seen:
            seen.append(copy.deepcopy(unit.module.state_dict()))
        means = own(unit, parts, index)
        seen.append(copy.deepcopy(unit.module.state_dict()))
        return means

    monkeypatch.setattr(loop, "optimize", watched)
    config = FinetuneConfig(**BRIEF, evaluations=1, average={"kind": "ema", "share": 0.2})
    result = finetune(run, task, tmp_path / "out", config=config, **QUIET)
    mean, *others = seen
    assert len(others) == 30
    for weights in others:
        mean = {name: tensor + (weights[name] - tensor) / 6 for name, tensor in mean.items()}
    for name, tensor in load_file(result.path / "model.safetensors").items():
        torch.testing.assert_close(tensor, mean[name], atol=1e-6, rtol=1e-5)
    assert any(not torch.equal(others[-1][name], tensor) for name, tensor in mean.items())


def test_batches_are_made_while_the_model_learns(run, task, tmp_path, monkeypatch):
    own, threads = Fitting.batches, set()

    def noted(self, step):
        threads.add(threading.current_thread() is threading.main_thread())
        return own(self, step)

    monkeypatch.setattr(Fitting, "batches", noted)
    finetune(run, task, tmp_path / "out", config=FinetuneConfig(**BRIEF, evaluations=1), **QUIET)
    assert threads == {False}


def test_plateau_looks_at_the_losses_on_dev(rows, recipe, corpus):
    unit = fitting_of("classification", open_source(recipe, corpus), rows, schedule="plateau", warmup=0.0)
    rates = []
    for losses in ([], [1.0], [1.0, 0.9], [1.0, 0.9, 0.95], [1.0, 0.9, 0.95, 0.95]):
        unit.dev_losses = losses
        rates.append(unit.factor(3))
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.25]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "lamb"}, "learning_rate: no default is known for the optimizer lamb; give one"),
        ({"optimizer": "muon", "search": True}, "learning_rate: no default is known for the optimizer muon"),
        ({"optimizer": {"kind": "lamb", "lr": 1e-3}}, "optimizer: lr: .* as `learning_rate`"),
        ({"optimizer": {"kind": "adamw", "weight_decay": 0.1}}, "optimizer: weight_decay: .* as `weight_decay`"),
        ({"optimizer": "adamx"}, "there is no 'adamx'; did you mean 'adamw'"),
        ({"optimizer": {"kind": "lamb", "beta": 1}}, "unknown key 'beta'; did you mean 'betas'"),
        ({"schedule": {"kind": "cosine", "warmup": 3}}, "schedule: warmup: .* as `warmup`"),
        ({"schedule": "lines"}, "there is no 'lines'; did you mean 'linear'"),
        (
            {"optimizer": "adafactor", "learning_rate": 1e-3, "weight_decay": 0.1},
            "weight_decay: the optimizer adafactor",
        ),
        ({"micro_batch": 0}, "micro_batch"),
        ({"average": {"kind": "ema", "share": 1}}, "average.share"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, message, run, task, tmp_path):
    with pytest.raises(UserError, match=message) as raised:
        finetune(run, task, tmp_path / "out", config=FinetuneConfig.parse(settings, "--option"), **QUIET)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_settings_of_an_older_run_mean_what_they_meant():
    written = {"schedule": "cosine", "learning_rate": [1e-3], "weight_decay": 0.1}
    config = FinetuneConfig.parse(written, "task.yaml")
    assert (config.schedule.kind, config.optimizer.kind) == ("cosine", "adamw")
    assert config.optimizer_at(2e-3).model_dump() == {**config.optimizer.model_dump(), "lr": 2e-3} | {
        "lr": 2e-3,
        "weight_decay": 0.1,
        "betas": (0.9, 0.999),
        "epsilon": 1e-6,
        "bias_correction": True,
        "kind": "adamw",
    }
    assert FinetuneConfig.parse(config.model_dump(mode="json"), "task.yaml") == config


def test_what_an_older_version_has_saved_is_refused(run, task, tmp_path, monkeypatch):
    config = FinetuneConfig(**BRIEF)
    stopped(monkeypatch, 2, lambda: finetune(run, task, tmp_path / "out", config=config, **QUIET))
    folder = tmp_path / ".out.unfinished"
    (folder / "checkpoints").rename(folder / "checkpoint-1")
    with pytest.raises(UserError, match="saved in another form; go on with that version, or delete"):
        finetune(run, task, tmp_path / "out", config=config, resume=True, **QUIET)
    assert (folder / "checkpoint-1").is_dir()  # for that version
