"""`predict --probabilities`: the probability of every class, in every place where a run predicts."""

import json

import numpy as np
import pytest
import torch

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.rows.batches import collate

TEXTS = ["baran apple saw", "saw, baran lion"]


def test_they_are_those_of_the_model_and_name_every_class(fitted, tmp_path, capsys):
    run = FinetunedRun.open(fitted.path)
    said = bakeoff.predict(run, TEXTS, probabilities=True, device="cpu")
    format = run.format()
    with torch.no_grad():
        scores = run.load(torch.device("cpu")).eval()(collate(format.encode(TEXTS), np.arange(2), format))
    for each, outputs in zip(said, scores.softmax(-1).tolist(), strict=True):
        assert list(each["probabilities"]) == run.learned.classes
        assert [*each["probabilities"].values()] == pytest.approx(outputs, abs=2e-6)
        assert each["probabilities"][each["label"]] == each["probability"] == max(each["probabilities"].values())
    assert said == bakeoff.load(fitted.path, device="cpu").predict(TEXTS, probabilities=True)
    plain = [{key: each[key] for key in ("label", "probability")} for each in said]
    assert plain == bakeoff.predict(run, TEXTS, device="cpu")
    asked = ["predict", str(fitted.path), *TEXTS, "--probabilities", "--device", "cpu"]
    assert command([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == said
    assert command([*asked, "--out", str(tmp_path / "a.jsonl")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines == [{"text": text, **each} for text, each in zip(TEXTS, said, strict=True)]
    capsys.readouterr()
    assert command(asked) == 2
    assert "--probabilities is about predictions with names; give --out FILE or --json" in capsys.readouterr().err


def test_they_stand_beside_columns_and_are_learned_from(fitted, tmp_path):
    texts, answers = tmp_path / "texts.jsonl", tmp_path / "answers.jsonl"
    texts.write_text("".join(json.dumps({"text": text, "probabilities": 3}) + "\n" for text in TEXTS * 8))
    arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--probabilities"]
    assert command([*arguments, "--out", str(answers), "--device", "cpu"]) == 0
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    expected = bakeoff.predict(fitted.path, TEXTS * 8, probabilities=True, device="cpu")
    assert [row["predicted_probabilities"] for row in rows] == [each["probabilities"] for each in expected]
    assert {row["probabilities"] for row in rows} == {3}
    task = bakeoff.ClassificationConfig(
        train=answers, text_column="text", label_column="label", probabilities_column="predicted_probabilities"
    )
    given = [pytest.approx(each["probabilities"], abs=1e-5) for each in expected]
    assert [each.probabilities for each in task.read(answers)] == given


def test_a_task_without_classes_has_none(recipe, corpus, tmp_path, capsys):
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "".join(f"a {i}\t{i}\n" for i in range(40)))
    task = bakeoff.RegressionConfig(train=tmp_path / "rows.tsv", text_column="text", label_column="label")
    config = bakeoff.FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1)
    options = {"config": config, "tokenizer": corpus, "device": "cpu", "progress": False}
    rated = bakeoff.finetune(recipe, task, tmp_path / "run", **options).path
    with pytest.raises(UserError, match="a run for regression has no classes to have probabilities; ask for none"):
        bakeoff.predict(rated, TEXTS, probabilities=True, device="cpu")
    with pytest.raises(UserError, match="a run for regression has no classes"):
        bakeoff.load(rated, device="cpu").predict(TEXTS, probabilities=True)
    assert command(["predict", str(rated), "a", "--probabilities", "--json", "--device", "cpu"]) == 2
    assert "a run for regression has no classes" in capsys.readouterr().err
