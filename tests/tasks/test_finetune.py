import json
import os
import random
import signal
import threading

import pytest
import torch
import yaml
from keyword_task import labelled, write_tsv
from safetensors.torch import load_file

from bakeoff.errors import Interrupted, UserError
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.resolution import default_learning_rate
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.predict import predict
from bakeoff.tokenizer.tokenizer import Tokenizer

QUIET = {"device": "cpu", "progress": False}
BRIEF = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=3)


def test_from_scratch_learns_keywords(fitted, quick):
    assert fitted.scores["test"]["accuracy"] > 0.9
    assert fitted.simplest["accuracy"] == pytest.approx(1 / 3)
    assert fitted.transferred_tensors == 0
    assert fitted.rows == {"train": 240, "dev": 60, "test": 90}
    assert fitted.best_epoch <= fitted.epochs <= quick.epochs[0]
    assert fitted.source is None


def test_the_directory_holds_everything(fitted, quick):
    path = fitted.path
    assert {file.name for file in path.iterdir()} == {
        "README.md",
        "asked.json",
        "bakeoff.sha256",
        "environment.json",
        "labels.json",
        "metrics.jsonl",
        "model.safetensors",
        "predictions.jsonl",
        "recipe.yaml",
        "results.json",
        "task.yaml",
        "tokenizer.json",
    }
    results = json.loads((path / "results.json").read_text())
    assert results["scores"] == fitted.scores
    assert results["classes"] == json.loads((path / "labels.json").read_text()) == ["fruit", "place", "tool"]
    settings = yaml.safe_load((path / "task.yaml").read_text())
    assert settings["finetune"]["pooling"] == "cls"
    assert settings["finetune"]["length"] == 32
    assert settings["task"]["metric"] == "accuracy"
    run = FinetunedRun.open(path)
    predictions = run.predictions()
    right = sum(line["label"] == line["prediction"] for line in predictions)
    assert right / len(predictions) == pytest.approx(fitted.scores["test"]["accuracy"])
    assert all(1 / 3 <= line["probability"] <= 1 for line in predictions)
    assert run.results == fitted
    evaluations = run.metrics()
    best = max(evaluations, key=lambda line: (line["accuracy"], -line["loss"]))
    assert best["epoch"] == fitted.best_epoch
    assert best["accuracy"] == fitted.scores["dev"]["accuracy"]
    epoch_steps = -(-240 // settings["finetune"]["batch"])
    assert [line["epoch"] for line in evaluations] == [round(line["step"] / epoch_steps, 3) for line in evaluations]
    assert "0 of" in (path / "README.md").read_text()


def test_pretrained_tensors_are_counted(run, task, tmp_path):
    result = finetune(run.path, task, tmp_path / "out", config=BRIEF, **QUIET)
    own = load_file(tmp_path / "out" / "model.safetensors")
    assert result.total_tensors == len(own)
    assert result.transferred_tensors == len(own) - 2
    assert result.source == str(run.path)
    assert finetune(run, task, tmp_path / "again", config=BRIEF, **QUIET).scores == result.scores


def test_equal_seeds_give_equal_bits(run, task, tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        torch.manual_seed(random.randrange(1000))  # what was drawn before must not matter
        finetune(run, task, tmp_path / name, config=BRIEF, seed=seed, **QUIET)
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    assert (tmp_path / "a/predictions.jsonl").read_text() == (tmp_path / "b/predictions.jsonl").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "causal_recipe",
        *(pytest.param(f"{each}_recipe", marks=pytest.mark.slow) for each in ("convolution", "sequence_to_sequence")),
    ],
)
def test_other_architectures_learn(request, name, task, quick, corpus, tmp_path):
    recipe = request.getfixturevalue(name)
    result = finetune(recipe, task, tmp_path / "out", config=quick, tokenizer=corpus, **QUIET)
    assert result.scores["test"]["accuracy"] > 0.9


def test_pairs_whose_order_decides(recipe, corpus, tmp_path):
    for name, rows, seed in (("train", 400, 1), ("dev", 80, 2), ("test", 80, 3)):
        draw = random.Random(seed)
        made = []
        for _ in range(rows):
            first = draw.choice(["apple", "saw"])
            other = "saw" if first == "apple" else "apple"
            made.append({"a": f"baran {first}", "b": f"{other} dosel", "label": f"{first} first"})
        write_tsv(tmp_path / f"{name}.tsv", made)
    paths = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    task = ClassificationConfig(**paths, text_column="a", pair_column="b", label_column="label", metric="matthews")
    config = FinetuneConfig(learning_rate=3e-3, epochs=20, least_steps=0)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)
    assert result.scores["test"]["matthews"] > 0.9
    assert result.metric == "matthews"
    labels = [
        each["label"] for each in predict(tmp_path / "out", ["baran saw", "baran apple"], ["apple dosel", "saw dosel"])
    ]
    assert labels == ["saw first", "apple first"]
    with pytest.raises(UserError, match="2 texts and 1 second text:"):
        predict(tmp_path / "out", ["baran saw", "baran apple"], ["apple dosel"])
    with pytest.raises(UserError, match="pairs of texts; give both"):
        predict(tmp_path / "out", ["baran saw"])


def test_early_stopping_keeps_the_best_weights(recipe, corpus, task, tmp_path):
    config = FinetuneConfig(learning_rate=[3e-3], epochs=40, least_steps=0, evaluations=40, patience=2)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)
    assert result.epochs < 40
    evaluations = FinetunedRun.open(tmp_path / "out").metrics()
    assert evaluations[-1]["epoch"] == result.epochs
    assert max(line["accuracy"] for line in evaluations) == result.scores["dev"]["accuracy"]
    # Two evaluations without a better score stop it; the weights kept are those of the best one.
    assert max(line["accuracy"] for line in evaluations[:-2]) == result.scores["dev"]["accuracy"]
    assert [line["loss"] for line in evaluations if line["epoch"] == result.best_epoch] == [
        min(line["loss"] for line in evaluations if line["accuracy"] == result.scores["dev"]["accuracy"])
    ]
    assert result.scores["test"]["accuracy"] > 0.9


def test_dev_chooses_the_learning_rate(recipe, corpus, task, tmp_path):
    config = FinetuneConfig(learning_rate=[1e-7, 3e-3], epochs=8, least_steps=0)
    result = finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)
    assert result.learning_rate == 3e-3
    assert {line["learning_rate"] for line in FinetunedRun.open(tmp_path / "out").metrics()} == {1e-7, 3e-3}


def test_a_learning_rate_that_diverges_does_not_stop_the_others(recipe, corpus, task, tmp_path):
    config = BRIEF.model_copy(update={"learning_rate": [1e30, 1e-3]})
    assert finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET).learning_rate == 1e-3


def test_held_out_parts_are_noted(recipe, corpus, tmp_path):
    write_tsv(tmp_path / "train.tsv", labelled(120, 1))
    task = ClassificationConfig(train=tmp_path / "train.tsv", text_column="text", label_column="label")
    result = finetune(
        recipe, task, tmp_path / "out", config=BRIEF.model_copy(update={"length": 8}), tokenizer=corpus, **QUIET
    )
    assert result.rows == {"train": 84, "dev": 12, "test": 24}
    assert any("held out as test" in note for note in result.notes)
    assert any("cut to 8 tokens" in note for note in result.notes)
    assert "held out as dev" in (tmp_path / "out" / "README.md").read_text()


def test_what_is_refused(run, recipe, causal_recipe, corpus, task, fitted, tmp_path):
    def refused(message, source, out="out", **options):
        with pytest.raises(UserError, match=message):
            finetune(source, task, tmp_path / out, **QUIET, **options)
        assert not list(tmp_path.glob(".*"))

    refused("the tokenizer is needed", recipe)
    refused("has its own tokenizer", run, tokenizer=corpus)
    refused("no such run", tmp_path / "none")
    refused("not a run", corpus)
    refused("last is for causal models", run, config=FinetuneConfig(pooling="last"))
    causal = {"tokenizer": corpus, "config": FinetuneConfig(pooling="cls")}
    refused("first position of a causal model", causal_recipe, **causal)
    refused("more than the 512 positions", run, config=FinetuneConfig(length=1000))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused("holds something else already", run, out="full")
    with pytest.raises(UserError, match="holds a fine-tuned run already"):
        finetune(run, task, fitted.path, **QUIET)
    with pytest.raises(UserError, match="not positive"):
        FinetuneConfig.parse({"learning_rate": [0]}, "config")


def test_a_loss_that_is_no_number_leaves_nothing(recipe, corpus, task, tmp_path):
    wild = BRIEF.model_copy(update={"learning_rate": [1e30]})
    with pytest.raises(UserError, match=r"not a finite number at step \d+; try a lower learning rate"):
        finetune(recipe, task, tmp_path / "out", config=wild, tokenizer=corpus, **QUIET)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fine_tuning_leaves_nothing_where_its_run_was_to_be(recipe, corpus, task, tmp_path):
    config = FinetuneConfig(learning_rate=[1e-3], epochs=10_000, patience=None)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(Interrupted, match="with --resume goes on") as caught:
        finetune(recipe, task, tmp_path / "out", config=config, tokenizer=corpus, **QUIET)
    timer.join()
    assert caught.value.signal_number == signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == [".out.unfinished"]


def test_the_default_learning_rate_follows_the_width(recipe):
    assert default_learning_rate(recipe.changed({"model.encoder.width": 768})) == pytest.approx(5e-5)


def test_the_tokenizer_of_a_run_serves_from_scratch(run, recipe, task, tmp_path):
    result = finetune(recipe, task, tmp_path / "out", config=BRIEF, tokenizer=run.path / "tokenizer.json", **QUIET)
    assert result.transferred_tensors == 0
    assert Tokenizer.load(tmp_path / "out").to_string() == run.tokenizer.to_string()


def test_results_from_before_other_tasks_can_still_be_read(fitted):
    values = fitted.model_dump(mode="json", exclude={"path", "kind", "simplest"})
    found = FinetuneResult.parse({**values, "majority": 0.25}, "results.json", strict=True)
    assert (found.kind, found.simplest, found.scores) == ("classification", {"accuracy": 0.25}, fitted.scores)
