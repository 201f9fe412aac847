"""Fine-tuned runs of models that transformers does not have, through its pipelines: the answers of `predict`."""

import json
import random

import pytest

from bakeoff.interop.export import export
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.predict import predict
from tests.conftest import shrink
from tests.interop.test_remote_code import program

pytest.importorskip("transformers")

QUICK = FinetuneConfig(learning_rate=[3e-3], epochs=2, least_steps=0, evaluations=1, length=32)
WORDS = ["one", "two", "river", "stone", "green", "window"]


def sentences(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 7))) for _ in range(count)]


def files(folder, make):
    """The same rows as train, dev and test."""
    rows = [make(number, text) for number, text in enumerate(sentences(48))]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return dict.fromkeys(("train", "dev", "test"), path)


def fitted(recipe, task, corpus, folder, **changes):
    """A run, and what is exported of it."""
    config = QUICK.model_copy(update=changes)
    finetune(recipe, task, folder / "run", config=config, tokenizer=corpus.path, device="cpu", progress=False)
    done = export(folder / "run", folder / "out")
    assert done.largest_difference < 1e-3
    return folder / "run", {"folder": str(folder / "out"), "texts": sentences(5, seed=1)}


def test_classes_pairs_labels_and_numbers(corpus, tmp_path):
    places = [tmp_path / name for name in ("classes", "labels", "numbers")]
    for place in places:
        place.mkdir()
    columns = {"text_column": "t", "label_column": "y"}
    classes = ClassificationConfig(**files(places[0], lambda n, t: {"t": t, "y": "ab"[n % 2]}), **columns)
    run, job = fitted(shrink("conv-light-encoder-tiny"), classes, corpus, places[0], layers="weighted", pooling="cls")
    jobs, runs = [{**job, "do": "ask", "pipeline": "text-classification"}], [run]
    labels = MultilabelConfig(**files(places[1], lambda n, t: {"t": t, "y": [["a"], ["a", "b"]][n % 2]}), **columns)
    run, job = fitted(shrink("gcnn-tiny"), labels, corpus, places[1])
    more = {"function_to_apply": "sigmoid", "top_k": None}
    jobs.append({**job, "do": "ask", "pipeline": "text-classification", "more": more})
    runs.append(run)
    numbers = RegressionConfig(**files(places[2], lambda n, t: {"t": t, "y": 100 + 5 * len(t)}), **columns)
    run, job = fitted(shrink("elmo-tiny"), numbers, corpus, places[2], pooling="mean", layers=2)
    jobs.append({**job, "do": "ask", "pipeline": "text-classification", "more": {"function_to_apply": "none"}})
    runs.append(run)
    for each in jobs:
        each["auto"] = "AutoModelForSequenceClassification"
    found = program(jobs, tmp_path)
    ours = [predict(run, job["texts"], device="cpu") for run, job in zip(runs, jobs, strict=True)]
    for (own,), other in zip(found[0], ours[0], strict=True):
        assert own["label"] == other["label"]
        assert own["score"] == pytest.approx(other["probability"], abs=1e-4)
    for own, other in zip(found[1], ours[1], strict=True):
        scores = {each["label"]: each["score"] for each in own}
        assert scores == pytest.approx(other["probabilities"], abs=1e-4)
    for (own,), other in zip(found[2], ours[2], strict=True):
        assert own["score"] == pytest.approx(other["value"], abs=1e-2)
