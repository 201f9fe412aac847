"""The number of epochs of a fine-tuning: what is given is trained, and what replaces a default is said."""

import json

import pytest
from keyword_task import labelled, write_tsv

from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.overview.entries import entry_of
from bakeoff.overview.listing import state_text
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.resolution import lengthened, resolve_finetuning

QUIET = {"device": "cpu", "progress": False}
ITEMS, EPOCH = 100, 4
"""Items of train, and the steps of an epoch of them in batches of 32."""


@pytest.mark.parametrize(
    ("given", "epochs"),
    [
        ({}, [75]),
        ({"epochs": 2}, [2]),
        ({"epochs": [1, 40, 200]}, [1, 40, 200]),
        ({"least_steps": 0}, [10]),
        ({"least_steps": 41}, [11]),
        ({"epochs": [2, 20], "least_steps": 41}, [11, 20]),
        ({"search": True}, [75]),
        ({"search": True, "epochs": [2, 4]}, [2, 4]),
        ({"search": True, "least_steps": 20}, [5, 10]),
        ({"batch": 1}, [10]),
    ],
)
def test_what_is_given_is_trained(recipe, task, given, epochs):
    """Also where the settings have been through a file, or a message to another process."""
    asked = TaskPlan.parse({"name": "a", "data": task, "finetune": given}, "plan")
    sent = TaskPlan.parse(json.loads(json.dumps(asked.model_dump(mode="json"))), "order")
    for config in (FinetuneConfig(**given), asked.finetune, sent.finetune):
        assert lengthened(resolve_finetuning(config, recipe, task), ITEMS).epochs == epochs


def test_two_epochs_of_few_rows_are_two(run, task, tmp_path):
    result = finetune(run, task, tmp_path / "out", config=FinetuneConfig(epochs=2, patience=None), **QUIET)
    assert result.epochs == result.planned_epochs == 2
    assert result.default_epochs == []
    assert not any("epoch" in note for note in result.notes)
    entry = entry_of(tmp_path / "out")
    assert (entry.step, entry.steps) == (16, 16)


def test_more_epochs_than_the_default_are_said(run, tmp_path):
    for name, rows, seed in (("train", 96, 1), ("dev", 12, 2), ("test", 12, 3)):
        write_tsv(tmp_path / f"{name}.tsv", labelled(rows, seed))
    files = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    task = TaskPlan.parse({"name": "few", "text_column": "text", "label_column": "label", **files}, "plan").data
    config = FinetuneConfig(learning_rate=1e-9, evaluations=300, patience=1)
    result = finetune(run, task, tmp_path / "out", config=config, **QUIET)
    more = "up to 100 epochs in place of 10: an epoch has 3 steps, and `least_steps` asks for 300 at least"
    assert more in result.notes
    assert result.default_epochs == [10]
    stopped = (
        f"stopped at epoch {result.epochs:.3g} of 100, after 1 evaluation on dev without a better one (`patience`)"
    )
    assert stopped in result.notes
    assert "up to 100 epochs in place of 10" in (tmp_path / "out/README.md").read_text()
    assert {line["steps"] for line in FinetunedRun.open(tmp_path / "out").metrics()} == {300}
    entry = entry_of(tmp_path / "out")
    assert entry.step == round(3 * result.epochs) < entry.steps == 300


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"step": 30, "steps": 300, "epochs": 100, "epoch": 10.0}, "stopped at step 30 of 300"),
        ({"step": 30, "epochs": 20, "epoch": 10.0}, "stopped at step 30 of 60"),
        ({"step": 150, "epochs": 10, "epoch": 50.0}, "stopped at step 150"),
    ],
)
def test_no_run_has_done_more_steps_than_it_plans(tmp_path, line, text):
    """Older versions wrote the epochs that `least_steps` had replaced."""
    folder = tmp_path / ".task.unfinished"
    folder.mkdir()
    (folder / "asked.json").write_text("{}")
    looked = {"kind": "dev", "learning_rate": 1e-3, "loss": 1.0, **line}
    (folder / "metrics.jsonl").write_text(json.dumps(looked) + "\n")
    assert state_text(entry_of(folder)) == text


def test_settings_of_held_out_splits_without_a_use_are_noted(task):
    def notes(**changes):
        return load_task(task.model_copy(update=changes)).notes

    assert notes() == []
    assert notes(dev_share=0.3) == ["dev_share 0.3 has no use: dev has a file of its own, dev.tsv"]
    assert notes(test_share=0.5, split_seed=3) == [
        "test_share 0.5 has no use: test has a file of its own, test.tsv",
        "split_seed 3 has no use: dev and test have files of their own",
    ]
    assert not any("no use" in note for note in notes(dev=None, dev_share=0.3, split_seed=3))
