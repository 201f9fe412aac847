"""What the command says that int8 loses is what a user finds who runs both models."""

import json
import random
import re

import numpy as np
import pytest

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.interop.onnx import quantization
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from tests.conftest import shrink
from tests.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

import tokenizers

from bakeoff.interop.onnx.conversion import open_session

WORDS = ["one", "two", "river", "stone", "green", "window"]


def sentences(count):
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=draw.randint(3, 9))) for _ in range(count)]


class Exported:
    """A folder in the hands of a user: tokenizers and onnxruntime, and nothing of Bakeoff."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.encode_special_tokens = True
        self.session = open_session(folder / "model.onnx")

    def row(self, text):
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return np.array([self.config["before"] + ids + self.config["behind"]])

    def logits(self, ids):
        return self.session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]


def figures(made, name):
    """Before and after, of a figure that the command prints."""
    (line,) = [remark for remark in made.remarks if remark.startswith("int8 of ")]
    found = re.search(rf"{name}[^;]*? ([0-9.]+) before, ([0-9.]+) after", line, re.IGNORECASE)
    return float(found[1]), float(found[2])


@pytest.mark.slow
def test_the_accuracy_of_a_classifier_and_how_fast_it_is(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(quantization, "_times", lambda sessions, rows: [3.0, 2.0])  # seconds of float32 and of int8
    texts = sentences(80)
    file = tmp_path / "rows.tsv"
    # Half of the labels say what a text has, the others what it has not, so that accuracy is neither 0 nor 1.
    labels = ["ab"["river" in text] if place % 3 else "ba"["river" in text] for place, text in enumerate(texts)]
    file.write_text("t\ty\n" + "".join(f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)))
    task = ClassificationConfig(train=file, dev=file, test=file, text_column="t", label_column="y")
    config = FinetuneConfig(learning_rate=[3e-3], epochs=2, least_steps=0, evaluations=1, length=32)
    run = tmp_path / "run"
    recipe = shrink("conv-light-encoder-tiny")
    finetune(recipe, task, run, config=config, tokenizer=corpus.path, device="cpu", progress=False)
    made = export(run, tmp_path / "int8", to="onnx", quantize="int8", measure_on=file)
    export(run, tmp_path / "plain", to="onnx")
    right = []
    for name in ("plain", "int8"):
        own = Exported(tmp_path / name)
        said = [own.config["labels"][own.logits(own.row(text))[0].argmax()] for text in texts]
        right.append(np.mean([one == other for one, other in zip(said, labels, strict=True)]))
    assert figures(made, "Accuracy on 80 rows of rows.tsv") == pytest.approx(right, abs=1e-4)
    assert 0.3 < right[0] < 1
    assert any("int8 is 1.50 times as fast as float32" in remark for remark in made.remarks)
    assert any("depends a little on the texts beside it" in remark for remark in made.remarks)
    assert "depends a little on the texts beside it" in (made.path / "README.md").read_text()


def test_a_table_without_texts_is_refused_without_an_option_that_export_has_not(corpus, tmp_path):
    run = untrained("conv-light-encoder-tiny", corpus, tmp_path / "run")
    (tmp_path / "a.tsv").write_text("sentence\tlabel\na\tb\n")
    with pytest.raises(UserError, match=r"a\.tsv:1: no column 'text' \(columns here: sentence, label\); rename it"):
        export(run.path, tmp_path / "int8", to="onnx", quantize="int8", measure_on=tmp_path / "a.tsv")


@pytest.mark.slow
def test_the_loss_and_the_agreement_of_a_masked_model(corpus, tmp_path):
    run = untrained("conv-light-encoder-tiny", corpus, tmp_path / "run")
    texts = sentences(300)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    made = export(run.path, tmp_path / "int8", to="onnx", quantize="int8", measure_on=tmp_path / "texts.txt")
    export(run.path, tmp_path / "plain", to="onnx")
    plain, small = Exported(tmp_path / "plain"), Exported(tmp_path / "int8")
    same = [(plain.logits(row).argmax(-1) == small.logits(row).argmax(-1))[0] for row in map(plain.row, texts)]
    _, agreed = figures(made, "same likeliest output on the texts of texts.txt")
    assert agreed == pytest.approx(np.concatenate(same).mean(), abs=0.04)  # of rows one by one, not of whole batches
    # Other tokens are hidden here, so that the losses are alike within what chance makes of them.
    draw, found = np.random.default_rng(11), ([], [])
    for row in map(plain.row, texts):
        hidden = draw.random(row.shape) < 0.15
        hidden[:, 0] = hidden[:, -1] = False
        if hidden.any():
            masked = np.where(hidden, plain.config["special_ids"]["mask"], row)
            for losses, own in zip(found, (plain, small), strict=True):
                scores = own.logits(masked)[hidden].astype(np.float64)
                chosen = scores[np.arange(len(scores)), row[hidden]]
                losses += (
                    np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1)) + scores.max(-1) - chosen
                ).tolist()
    before, after = figures(made, "loss of hidden tokens in nats")
    error = np.std(found[0]) / len(found[0]) ** 0.5
    assert before == pytest.approx(np.mean(found[0]), abs=4 * error)
    assert after - before == pytest.approx(np.mean(found[1]) - np.mean(found[0]), abs=0.1 * error + 0.02)
