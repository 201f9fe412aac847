"""A fine-tuned classifier, tagger and reader give one answer each: in Bakeoff, in transformers and in onnxruntime."""

import json

import pytest
import torch

from bakeoff.interop.export import export
from bakeoff.resources.device import Placement
from bakeoff.tasks.data import read_examples
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict
from bakeoff.tasks.predictions.predicting import predictions_of
from tests.conftest import shrink
from tests.interop.fitted_runs import files, fitted, sentences
from tests.interop.test_remote_code import program

pytest.importorskip("transformers")
pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.measuring import OnnxHead

TEXTS = sentences(6, seed=1)


def by_onnxruntime(run, rows, folder):
    """The answers that the numbers of model.onnx give, for rows of a file like the task's."""
    made = export(run, folder / "onnx", to="onnx")
    tuned = FinetunedRun.open(run)
    examples, _ = read_examples(tuned.task, rows)
    head = OnnxHead(open_session(made.path / "model.onnx"))
    items = tuned.learned.encode(examples, tuned.format())
    found = predictions_of(head, items, tuned.learned, tuned.format(), Placement(torch.device("cpu"), "float32"))
    return [tuned.learned.as_record(*each) for each in zip(examples, found.predictions, strict=True)]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tags_of(text):
    return ["xyz"[len(word) % 3] for word in text.split()]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["bert-tiny", "conv-light-encoder-tiny"])
def test_a_classifier(recipe, corpus, tmp_path):
    columns = {"text_column": "t", "label_column": "y"}
    task = ClassificationConfig(**files(tmp_path, lambda n, t: {"t": t, "y": "ab"[n % 2]}), **columns)
    run, job = fitted(shrink(recipe), task, corpus, tmp_path)
    auto = "AutoModelForSequenceClassification"
    asked = {**job, "texts": TEXTS, "do": "ask", "pipeline": "text-classification", "auto": auto}
    (theirs,) = program([asked], tmp_path)
    ours = predict(run, TEXTS, device="cpu")
    numbers = by_onnxruntime(run, written(tmp_path / "own.jsonl", [{"t": text, "y": "a"} for text in TEXTS]), tmp_path)
    for own, (other,), third in zip(ours, theirs, numbers, strict=True):
        assert own["label"] == other["label"] == third["label"]
        assert own["probability"] == pytest.approx(other["score"], abs=1e-4)
        assert own["probability"] == pytest.approx(third["probability"], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["bert-tiny", "lstm-encoder-tiny"])
def test_a_tagger(recipe, corpus, tmp_path):
    columns = {"text_column": "t", "label_column": "y"}
    task = TaggingConfig(**files(tmp_path, lambda n, t: {"t": t.split(), "y": tags_of(t)}), **columns)
    run, job = fitted(shrink(recipe), task, corpus, tmp_path)
    asked = {**job, "texts": TEXTS, "do": "ask", "pipeline": "token-classification"}
    asked |= {"auto": "AutoModelForTokenClassification", "more": {"aggregation_strategy": "none", "ignore_labels": []}}
    (theirs,) = program([asked], tmp_path)
    ours = predict(run, TEXTS, device="cpu")
    rows = written(tmp_path / "own.jsonl", [{"t": text.split(), "y": tags_of(text)} for text in TEXTS])
    for text, own, other, third in zip(TEXTS, ours, theirs, by_onnxruntime(run, rows, tmp_path), strict=True):
        firsts = {each["start"]: each["entity"] for each in other}
        words = text.split()
        starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
        assert own["tags"] == [firsts[start] for start in starts] == third["tags"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["bert-tiny", "conv-dynamic-encoder-tiny"])
def test_a_reader(recipe, corpus, tmp_path):
    """Transformers 5 has no pipeline for it: the model's numbers, the likeliest stretch looked for as we do."""

    def row(number, text):
        answer = text.split()[0]
        return {"question": "two", "context": f"stone {text}", "answer": answer, "at": 6}

    task = QuestionAnsweringConfig(**files(tmp_path, row), start_column="at", longest_answer=6)
    run, job = fitted(shrink(recipe), task, corpus, tmp_path)
    contexts = [f"stone {text}" for text in TEXTS]
    asked = {**job, "do": "answer", "auto": "AutoModelForQuestionAnswering", "longest": 6}
    (theirs,) = program([{**asked, "texts": [["two", context] for context in contexts]}], tmp_path)
    ours = [each["answer"] for each in predict(run, ["two"] * len(contexts), contexts, device="cpu")]
    rows = written(tmp_path / "own.jsonl", [row(0, text) for text in TEXTS])
    numbers = [each["answer"] for each in by_onnxruntime(run, rows, tmp_path)]
    assert ours == theirs == numbers
    assert len(set(ours)) > 1
