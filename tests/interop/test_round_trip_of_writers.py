"""Runs that were fine-tuned to write go out and come back: the same task, and the same texts."""

import json
import shutil
from importlib.util import find_spec

import pytest
import torch

import bakeoff
from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.interop.remote_code.export import written
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
from bakeoff.tensors import load_tensors
from tests.conftest import shrink
from tests.interop.fitted_runs import QUICK, files, sentences

RECIPES = [
    "t5-tiny",  # with marks of gaps, which are never written
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "gpt2-tiny",
            "conv-light-tiny",
            "transformer-tiny",
            "bart-tiny",
            "gpt-bert-tiny",
            "prefix-lm-tiny",
            "lstm-lm-tiny",
        )
    ),
]
SETTINGS = {
    "text_column": "long",
    "label_column": "short",
    "prefix": "shorten:",
    "metric": "rouge_l",
    "longest": 7,
    "beams": 3,
    "length_penalty": 6.0,
    "bleu_tokens": "char",
}


def exported(run, folder):
    """Where a run is written for transformers, which reading it back would take long for."""
    folder.mkdir()
    written(run, folder)
    return folder


def fitted(recipe, corpus, folder, **changes):
    """A run that writes the ends of sentences, and where it is exported."""
    rows = files(folder, lambda _, text: {"long": text, "short": " ".join(text.split()[-2:])})
    task = SequenceToSequenceConfig(**rows, **SETTINGS | changes)
    config = QUICK.model_copy(update={"epochs": [1], "length": 25})
    run = folder / "run"
    finetune(shrink(recipe), task, run, config=config, tokenizer=corpus.path, device="cpu", progress=False)
    return FinetunedRun.open(run), exported(run, folder / "out")


@pytest.fixture(scope="module")
def t5(corpus, tmp_path_factory):
    """One of them, for all that want no other; nobody changes it."""
    return fitted("t5-tiny", corpus, tmp_path_factory.mktemp("t5"))


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_run_that_writes_comes_back_as_it_was(recipe, t5, corpus, tmp_path):
    run, out = t5 if recipe == "t5-tiny" else fitted(recipe, corpus, tmp_path)
    back = import_model(out, tmp_path / "back")
    assert isinstance(back, FinetunedRun)
    here, there = (each.task.model_dump(exclude={"train", "dev", "test"}) for each in (run, back))
    assert here == there
    assert (back.config.length, back.config.truncate) == (25, "head")
    before, after = (load_tensors(each.path / "model.safetensors") for each in (run, back))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name][: len(tensor)], tensor) for name, tensor in after.items())
    texts = sentences(9, seed=3)
    ours, again = (bakeoff.predict(each.path, texts, device="cpu") for each in (run, back))
    assert [each["text"] for each in ours] == [each["text"] for each in again]
    assert all(each["text"] for each in ours)
    assert len({each["log_probability"] for each in ours}) > 1
    for own, other in zip(ours, again, strict=True):
        assert own["log_probability"] == pytest.approx(other["log_probability"], abs=2e-5)
    scores = [bakeoff.evaluate(each.path, data=run.task.test, device="cpu")["scores"] for each in (run, back)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    again = exported(back.path, tmp_path / "again")
    said, once_more = (json.loads((folder / "config.json").read_text()) for folder in (out, again))
    assert {name: said[name] for name in ("bakeoff", "architectures")}.items() <= once_more.items()


WRONG = {
    "no such setting": ({"longst": 3}, {}, "did you mean 'longest'?"),
    "no length": ({}, {"length": None}, "bakeoff: rows.length: 8 tokens or more are wanted"),
    "windows": ({}, {"truncate": "windows"}, "bakeoff: rows: truncate: texts of a task of the kind sequence_to_seq"),
    "parts of texts": ({}, {"truncate": "head+tail"}, "bakeoff: rows: truncate: a model that writes has no use for it"),
}


@pytest.mark.parametrize("case", WRONG)
def test_settings_that_no_run_has_are_one_line(case, t5, tmp_path):
    task, rows, message = WRONG[case]
    folder = shutil.copytree(t5[1], tmp_path / "theirs")
    config = json.loads((folder / "config.json").read_text())
    own = config["bakeoff"]
    config["bakeoff"] = own | {"task": own["task"] | task, "rows": own["rows"] | rows}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError) as error:
        import_model(folder, tmp_path / "back")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize(("recipe", "longest_source"), [("t5-tiny", 25), ("gpt2-tiny", 25 - 6)])
def test_an_export_says_how_long_sources_and_targets_are_and_what_precedes_them(
    recipe, longest_source, t5, corpus, tmp_path
):
    """A decoder alone has room in its row for the target: all of its 7 tokens but the last."""
    run, _ = t5 if recipe == "t5-tiny" else fitted(recipe, corpus, tmp_path)
    for folder, form in (("hf", {}), ("onnx", {"to": "onnx"})):
        if form and find_spec("onnxscript") is None:
            continue
        done = bakeoff.export(run.path, tmp_path / folder, **form)
        card = (done.path / "README.md").read_text()
        searched = "redict searches with 3 beams; this writes the likeliest token each time"
        assert any(each.endswith(searched) for each in done.remarks)
        assert searched in card
        if form:
            said = json.loads((done.path / "config.json").read_text())
            assert (said["prefix"], said["longest"], said["longest_source"]) == ("shorten: ", 7, longest_source)
            assert 'range(config["longest"])' in card
            continue
        assert json.loads((done.path / "generation_config.json").read_text())["max_new_tokens"] == 7
        assert json.loads((done.path / "tokenizer_config.json").read_text())["model_max_length"] == longest_source
        assert "each source is to begin with 'shorten:' and a space" in done.remarks
        assert "each source is to begin with 'shorten:' and a space" in card


def test_a_target_is_no_longer_than_its_row_allows(corpus, tmp_path):
    """A decoder alone leaves half of its row of 25 to the source, whatever its task's `longest` is."""
    run, _ = fitted("gpt2-tiny", corpus, tmp_path, longest=64, beams=1)
    done = bakeoff.export(run.path, tmp_path / "hf")
    assert not any("beams" in each for each in done.remarks)
    assert json.loads((done.path / "generation_config.json").read_text())["max_new_tokens"] == 12


OF_FAMILIES = {
    "t5-tiny": "T5ForConditionalGeneration",
    "bart-tiny": "BartForConditionalGeneration",
    "transformer-tiny": None,
}
"""The class that a recipe's runs go out with; None: code of their own."""


@pytest.mark.parametrize(
    "recipe", ["t5-tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bart-tiny", "transformer-tiny"))]
)
def test_it_goes_out_with_the_class_that_its_family_has(recipe, t5, corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    run, _ = t5 if recipe == "t5-tiny" else fitted(recipe, corpus, tmp_path)
    done = bakeoff.export(run.path, tmp_path / "native")
    architecture = json.loads((done.path / "config.json").read_text())["architectures"][0]
    assert architecture == (OF_FAMILIES[recipe] or "BakeoffForSeq2SeqLM")
    if OF_FAMILIES[recipe] is None:
        return
    assert not list(done.path.glob("*.py"))
    assert "each source is to begin with 'shorten:' and a space" in done.remarks
    texts = sentences(4, seed=3)
    tokenizer = transformers.AutoTokenizer.from_pretrained(done.path)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(done.path)
    rows = model.generate(**tokenizer([f"shorten: {text}" for text in texts], padding=True, return_tensors="pt"))
    greedy = bakeoff.import_model(done.path, tmp_path / "back")
    assert isinstance(greedy, FinetunedRun)
    ours = bakeoff.predict(run.path, texts, device="cpu")
    again = bakeoff.predict(greedy.path, texts, device="cpu")
    assert [each["text"] for each in ours] == [each["text"] for each in again]
    settings = (greedy.path / "task.yaml").read_text()
    (greedy.path / "task.yaml").write_text(settings.replace("beams: 3", "beams: 1"))
    (greedy.path / "bakeoff.sha256").unlink()
    likeliest = bakeoff.predict(greedy.path, texts, device="cpu")
    assert [each["text"] for each in likeliest] == tokenizer.batch_decode(rows, skip_special_tokens=True)
    assert bakeoff.export(run.path, tmp_path / "again").largest_difference < 1e-5


def test_without_its_head_it_is_a_model_that_writes(t5, tmp_path):
    back = import_model(t5[1], tmp_path / "back", head=False)
    assert not isinstance(back, FinetunedRun)
    assert bakeoff.generate(back.path, ["one river"], device="cpu")
