"""Fine-tuned runs through onnxruntime: the answers of `predict`, and what int8 loses of them."""

import json
import random

import pytest
import torch

from bakeoff.interop.export import export
from tests.conftest import shrink

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.measuring import OnnxHead
from bakeoff.resources.device import Placement
from bakeoff.tasks.data import read_examples
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predict import predict_file
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.registry import parse_task

WORDS = ["one", "two", "river", "stone", "green", "window"]


def sentences(count):
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 7))) for _ in range(count)]


def tagged(number, text):
    return {"t": text.split(), "y": ["xyz"[len(word) % 3] for word in text.split()]}


def chosen(number, text):
    return {"t": text, "e": [f"{text} one", "green window", "two"], "y": number % 3}


TEXT, LABEL = {"text_column": "t"}, {"label_column": "y"}
KINDS = {
    "classification": (TEXT | LABEL, "bert-tiny", lambda n, t: {"t": t, "y": "odd" if n % 2 else "even"}),
    "pairs": (
        TEXT | LABEL | {"kind": "classification", "pair_column": "u"},
        "albert-tiny",
        lambda n, t: {"t": t, "u": f"{t} two", "y": "abc"[n % 3]},
    ),
    "multilabel": (TEXT | LABEL, "tcn-encoder-tiny", lambda n, t: {"t": t, "y": ["x"] if n % 2 else ["x", "z"]}),
    "regression": (TEXT | LABEL, "xlnet-tiny", lambda n, t: {"t": t, "y": n % 7 + 0.5}),
    "tagging": (TEXT | LABEL, "conv-depthwise-encoder-tiny", tagged),
    "tags by a network of two directions": (TEXT | LABEL | {"kind": "tagging"}, "lstm-encoder-tiny", tagged),
    "tags by two networks": (TEXT | LABEL | {"kind": "tagging"}, "elmo-tiny", tagged),
    "question_answering": (
        {"start_column": "at"},
        "conv-light-encoder-tiny",
        lambda n, t: {"question": "two", "context": t, "answer": t.split()[1], "at": t.index(t.split()[1])},
    ),
    "choice": (TEXT | LABEL | {"choices": "e"}, "conv-light-hybrid-tiny", chosen),
    "choices of T5": (TEXT | LABEL | {"kind": "choice", "choices": "e"}, "t5-tiny", chosen),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_a_fine_tuned_run_answers_as_predict_does(name, corpus, tmp_path):
    columns, recipe, row = KINDS[name]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row(number, text)) + "\n" for number, text in enumerate(sentences(48))))
    task = parse_task({"kind": name, **dict.fromkeys(("train", "dev", "test"), str(file)), **columns}, "task")
    config = FinetuneConfig(learning_rate=[3e-3], epochs=1, least_steps=0, evaluations=1, length=32)
    folder = tmp_path / "run"
    finetune(shrink(recipe), task, folder, config=config, tokenizer=corpus.path, device="cpu", progress=False)
    made = export(folder, tmp_path / "onnx", to="onnx")
    run = FinetunedRun.open(folder)
    examples, _ = read_examples(run.task, file)
    items = run.learned.encode(examples, run.format())
    head = OnnxHead(open_session(made.path / "model.onnx"))
    found = predictions_of(head, items, run.learned, run.format(), Placement(torch.device("cpu"), "float32"))
    right = [each.prediction for part in predict_file(run, file, device="cpu") for each in part]
    assert len(right) == 48
    for example, one, other in zip(examples, found.predictions, right, strict=True):
        ours, theirs = (run.learned.as_record(example, each) for each in (one, other))
        assert ours == _rounded(theirs)
    small = export(folder, tmp_path / "int8", to="onnx", quantize="int8", measure_on=file)
    assert any("on 48 rows of rows.jsonl" in remark and "before" in remark for remark in small.remarks)
    assert (small.path / "model.onnx").stat().st_size < (made.path / "model.onnx").stat().st_size


def _rounded(values):
    if isinstance(values, float):
        return pytest.approx(values, abs=1e-4)
    if isinstance(values, dict):
        return {key: _rounded(value) for key, value in values.items()}
    return [_rounded(each) for each in values] if isinstance(values, list) else values
