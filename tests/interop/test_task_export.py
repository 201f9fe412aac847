"""Exports in the use that their cards show: pipelines answer as `predict` does, and classes hold all of the model."""

import json
import re
from pathlib import Path

import pytest

import bakeoff
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from tests.conftest import shrink
from tests.interop.elsewhere import ODD, write_wordpiece
from tests.interop.fitted_runs import files, fitted, sentences
from tests.untrained_runs import untrained

transformers = pytest.importorskip("transformers")


def test_classifier_answers_in_a_pipeline_as_here(tmp_path):
    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path / "theirs"
    folder.mkdir()
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=write_wordpiece(folder), max_position_embeddings=40, **sizes)
    transformers.BertForPreTraining(config).save_pretrained(folder)
    run = bakeoff.import_model(folder, tmp_path / "run")
    texts = [f"{word} {tail}" for word in ("the", "model", "reads", "中文") for tail in ("a b.", "xyz, c", "ding")]
    lines = [f"{text}\t{'even' if number % 2 else 'odd'}" for number, text in enumerate(texts * 3)]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n")
    files = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}
    task = bakeoff.ClassificationConfig(**files, text_column="text", label_column="label")
    made = bakeoff.finetune(
        run.path, task, tmp_path / "tuned", config=FinetuneConfig(epochs=[1], least_steps=2, length=16), progress=False
    )
    done = bakeoff.export(made.path, tmp_path / "out")
    assert done.largest_difference is not None
    assert done.largest_difference < 1e-5
    pipeline = transformers.pipeline("text-classification", model=str(done.path))
    long = "the model reads a b. " * 9
    (rows,) = FinetunedRun.open(made.path).format().encode([long]).ids
    assert pipeline.tokenizer(long, truncation=True)["input_ids"] == rows.tolist()
    theirs = pipeline(texts, batch_size=4)
    for own, each in zip(bakeoff.predict(made.path, texts), theirs, strict=True):
        assert own["label"] == each["label"]
        assert own["probability"] == pytest.approx(each["score"], abs=1e-5)


@pytest.mark.parametrize("recipe", ["bert-tiny", "laptop-hybrid-tiny"])
@pytest.mark.parametrize("kind", ["classification", "tagging"])
def test_what_pipelines_do_otherwise_is_said_whoever_wrote_the_class(recipe, kind, corpus, tmp_path):
    """The class of a family, and that of an export with code."""
    if kind == "tagging":
        path = tmp_path / "rows.conll"
        lines = [
            "".join(f"{word}\t{'O' if 'e' in word else 'B-x'}\n" for word in each.split()) for each in sentences(20)
        ]
        path.write_text("\n".join(lines))
        task, settings = TaggingConfig(**dict.fromkeys(("train", "dev", "test"), path)), {}
        said = "pipelines tag token by token, and do not refuse tags that cannot follow each other"
    else:
        rows = files(tmp_path, lambda number, text: {"text": text, "label": "ab"[number % 2]})
        task, settings = (
            ClassificationConfig(**rows, text_column="text", label_column="label"),
            {"truncate": "head+tail"},
        )
        said = "of texts that are too long pipelines read the beginning, and not head+tail"
    _, made = fitted(shrink(recipe), task, corpus, tmp_path, **settings)
    config = json.loads((Path(made["folder"]) / "config.json").read_text())
    assert ("auto_map" in config) == (recipe != "bert-tiny")
    assert said in (Path(made["folder"]) / "README.md").read_text()


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece"])
def test_odd_texts_are_read_there_as_here(kind, text_folder, tmp_path):
    corpus = bakeoff.prepare(
        [text_folder], tmp_path / "corpus", tokenizer=TokenizerConfig(kind=kind, size=300), progress=False
    )
    columns = {"text_column": "t", "label_column": "y"}
    task = bakeoff.ClassificationConfig(**files(tmp_path, lambda n, t: {"t": t, "y": "ab"[n % 2]}), **columns)
    run, job = fitted(shrink("gpt2-tiny"), task, corpus, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(job["folder"])(ODD)["input_ids"]
    assert [each.tolist() for each in FinetunedRun.open(run).format().encode(ODD).ids] == theirs


@pytest.mark.parametrize("name", ["gpt2-tiny", "gpt-tiny", "xlnet-tiny", "t5-tiny", "bart-tiny", "bert-tiny"])
def test_the_card_loads_the_class_that_holds_all_of_it(name, corpus, tmp_path):
    """And names no pipeline of vectors."""
    bakeoff.export(untrained(name, corpus, tmp_path / "run").path, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    auto = re.search(r"^model = (\w+)\.from_pretrained", card, re.MULTILINE)[1]
    loaded = getattr(transformers, auto).from_pretrained(tmp_path / "out", trust_remote_code=True)
    wanted = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["architectures"]
    assert [type(loaded).__name__] == wanted
    assert "feature-extraction" not in card
