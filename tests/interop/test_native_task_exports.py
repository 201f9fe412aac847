"""Fine-tuned decoders and XLNet go out with transformers' own classes, and come back."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import bakeoff
from bakeoff.interop.export import export
from bakeoff.interop.families.task_heads import SEQUENCE, HeadForm, NotSaid, row_head
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.rows.batches import collate
from tests.conftest import crossed, shrink
from tests.interop.fitted_runs import files, fitted

transformers = pytest.importorskip("transformers")

COLUMNS = {"text_column": "t", "label_column": "y"}
CASES = {
    "gpt2-tiny, classes": ("gpt2-tiny", ClassificationConfig, "last", "GPT2ForSequenceClassification"),
    "gpt2-tiny, numbers": ("gpt2-tiny", RegressionConfig, "last", "GPT2ForSequenceClassification"),
    "gpt2-tiny, tags": ("gpt2-tiny", TaggingConfig, "last", "GPT2ForTokenClassification"),
    "gpt-tiny, classes": ("gpt-tiny", ClassificationConfig, "last", "OpenAIGPTForSequenceClassification"),
    "modernbert-base, classes": (
        "modernbert-base",
        ClassificationConfig,
        "mean",
        "ModernBertForSequenceClassification",
    ),
    "modernbert-base, tags": ("modernbert-base", TaggingConfig, "mean", "ModernBertForTokenClassification"),
    "xlnet-tiny, classes": ("xlnet-tiny", ClassificationConfig, "cls", "XLNetForSequenceClassification"),
    "xlnet-tiny, tags": ("xlnet-tiny", TaggingConfig, "mean", "XLNetForTokenClassification"),
}
QUICK = ("gpt2-tiny, numbers", "gpt-tiny, classes", "modernbert-base, tags", "xlnet-tiny, classes")
"""Each family, kind of task and pooling once; the others are crossings."""


def rows_of(kind):
    """What makes a labelled row of a number and a text."""
    if kind is TaggingConfig:
        return lambda n, t: {"t": t.split(), "y": ["xyz"[len(word) % 3] for word in t.split()]}
    if kind is RegressionConfig:
        return lambda n, t: {"t": t, "y": 100 + 5 * len(t)}
    return lambda n, t: {"t": t, "y": "abc"[n % 3]}


@pytest.mark.parametrize("case", crossed(CASES, QUICK))
def test_numbers_and_answers_are_those_of_transformers_class(case, corpus, tmp_path):
    transformers.utils.logging.disable_progress_bar()
    recipe, kind, pooling, architecture = CASES[case]
    task = kind(**files(tmp_path, rows_of(kind)), **COLUMNS)
    model = shrink(recipe)
    if recipe == "gpt-tiny":  # whose family has no other width of the feed-forward network
        model = model.changed({"model.decoder.block.ffn.width": 4 * model.model.decoder.width})
    run, job = fitted(model, task, corpus, tmp_path, pooling=pooling, epochs=[1], transform=recipe == "modernbert-base")
    folder, texts = tmp_path / "out", job["texts"]
    assert json.loads((folder / "config.json").read_text())["architectures"] == [architecture]
    assert not list(folder.glob("*.py"))
    answers = bakeoff.predict(run, texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, architecture).from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    if kind is ClassificationConfig:
        for row, own in zip(logits.softmax(-1), answers, strict=True):
            assert model.config.id2label[int(row.argmax())] == own["label"]
            assert float(row.max()) == pytest.approx(own["probability"], abs=1e-5)
    elif kind is RegressionConfig:
        assert logits[:, 0].tolist() == pytest.approx([own["value"] for own in answers], rel=1e-5)
    back = import_model(folder, tmp_path / "back")
    assert isinstance(back, FinetunedRun)
    for own, before in zip(bakeoff.predict(back.path, texts), answers, strict=True):
        assert own.get("label") == before.get("label")
        assert own.get("tags") == before.get("tags")
        assert own.get("value", 0.0) == pytest.approx(before.get("value", 0.0), rel=1e-5)
    again = export(back.path, tmp_path / "again")
    first, second = (load_file(path / "model.safetensors") for path in (folder, again.path))
    assert first.keys() == second.keys()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"pooling": "mean"}, "its rows are pooled by mean, and Bert's by their first position"),
        ({"pooling": "cls", "pooler": "relu"}, "ends with relu, and Bert's with tanh"),
    ],
)
def test_a_head_that_computes_other_numbers_is_none_of_the_family(form, reason):
    with pytest.raises(NotSaid, match=reason):
        row_head("Bert", HeadForm(SEQUENCE, True, **form), "bert.pooler.dense", "classifier")


@pytest.mark.slow
def test_code_of_its_own_has_the_layer_and_the_separators_of_the_run(corpus, tmp_path):
    task = ClassificationConfig(
        **files(tmp_path, lambda n, t: {"t": t, "u": t[::-1], "y": "abc"[n % 3]}), **COLUMNS, pair_column="u"
    )
    settings = {"pooling": "cls", "pooler": "relu", "separators": 2, "epochs": [1]}
    run, job = fitted(shrink("conv-light-encoder-tiny"), task, corpus, tmp_path, **settings)  # which compares numbers
    assert json.loads((tmp_path / "out/config.json").read_text())["task_head"]["pooler"] == "relu"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    rows = FinetunedRun.open(run).format().encode(job["texts"], job["texts"][::-1]).ids
    assert tokenizer(job["texts"], job["texts"][::-1])["input_ids"] == [row.tolist() for row in rows]
    back = import_model(tmp_path / "out", tmp_path / "back", pairs=True)
    assert back.config.separators == 2
    ours, again = (bakeoff.predict(path, job["texts"], job["texts"][::-1]) for path in (run, back.path))
    for own, other in zip(ours, again, strict=True):
        assert own["probability"] == pytest.approx(other["probability"], abs=1e-5)


@pytest.mark.parametrize(
    ("recipe", "transform"), [("albert-tiny", True), pytest.param("modernbert-base", False, marks=pytest.mark.slow)]
)
def test_a_head_that_the_family_does_not_have_goes_out_with_code(recipe, transform, corpus, tmp_path):
    task = ClassificationConfig(**files(tmp_path, rows_of(ClassificationConfig)), **COLUMNS)
    run, job = fitted(shrink(recipe), task, corpus, tmp_path, pooling="cls", transform=transform, epochs=[1])
    assert (tmp_path / "out/modeling_bakeoff.py").is_file()
    back = import_model(tmp_path / "out", tmp_path / "back")
    assert back.config.transform == transform
    for own, other in zip(*(bakeoff.predict(path, job["texts"]) for path in (run, back.path)), strict=True):
        assert own["probability"] == pytest.approx(other["probability"], abs=1e-5)


def test_pairs_of_xlnet_have_their_segments(corpus, tmp_path):
    task = ClassificationConfig(
        **files(tmp_path, lambda n, t: {"t": t, "u": t[::-1], "y": "abc"[n % 3]}), **COLUMNS, pair_column="u"
    )
    run, job = fitted(shrink("xlnet-tiny"), task, corpus, tmp_path, pooling="cls", epochs=[1])
    texts, others = job["texts"], job["texts"][::-1]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    format = FinetunedRun.open(run).format()
    rows = format.encode(texts, others)
    batch = collate(rows, np.arange(len(texts)), format)
    padded = tokenizer(texts, others, padding=True, padding_side="right", return_tensors="pt")
    padding_mask = padded["attention_mask"].bool()
    assert torch.equal(padded["input_ids"][padding_mask], batch.ids[batch.padding_mask])
    assert torch.equal(padded["token_type_ids"][padding_mask], batch.segments[batch.padding_mask])
    assert {0, 1, 2} == set(batch.segments[batch.padding_mask].tolist())
    assert tokenizer.padding_side == "left"  # the class reads the last place of a row


@pytest.mark.slow
def test_more_classes_than_the_norm_can_take_over_go_out_with_code(corpus, tmp_path):
    model = shrink("gpt2-tiny")
    classes = model.model.decoder.width + 5
    make = lambda n, t: {"t": t, "y": f"c{n % classes}"}  # noqa: E731
    task = ClassificationConfig(**files(tmp_path, make, count=2 * classes), **COLUMNS)
    fitted(model, task, corpus, tmp_path, epochs=[1])
    assert (tmp_path / "out/modeling_bakeoff.py").is_file()


@pytest.mark.slow
def test_a_decoder_that_writes_goes_out_with_code(corpus, tmp_path):
    task = SequenceToSequenceConfig(**files(tmp_path, lambda n, t: {"source": t, "target": t.split()[0]}), longest=4)
    fitted(shrink("gpt2-tiny"), task, corpus, tmp_path, epochs=[1])
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config["architectures"] == ["BakeoffForCausalLM"]
