"""A fine-tuned run through a pipeline of transformers answers as `predict` does."""

import pytest

import bakeoff
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from tests.conftest import shrink
from tests.interop.elsewhere import ODD, write_wordpiece
from tests.interop.fitted_runs import files, fitted

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
