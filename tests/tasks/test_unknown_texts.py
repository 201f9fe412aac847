"""Labelled texts that the tokenizer does not know: counted, noted and warned of wherever a model would read them."""

import pytest
from keyword_task import labelled, write_tsv

from bakeoff.cli import run as run_cli
from bakeoff.tasks.checks.examine import check_task
from bakeoff.tasks.checks.hidden_text import hidden_in, hidden_notes
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig, LabelledText
from bakeoff.tasks.reading.words_and_tags import TaggedSentence
from bakeoff.tokenizer.tokenizer import Tokenizer

LONG = "Straßenbahnhaltestelle"


@pytest.fixture(scope="module")
def unknown(tmp_path_factory):
    """A task with a word that no tokenizer here knows in each text of test, and in none of the others."""
    folder = tmp_path_factory.mktemp("unknown")
    parts = {name: labelled(rows, seed) for name, rows, seed in (("train", 60, 1), ("dev", 20, 2), ("test", 20, 3))}
    parts["test"] = [{**row, "text": f"{LONG} {row['text']}"} for row in parts["test"]]
    paths = {name: write_tsv(folder / f"{name}.tsv", rows) for name, rows in parts.items()}
    return ClassificationConfig(**paths, text_column="text", label_column="label")


def test_a_training_an_evaluation_and_a_check_say_what_is_hidden(recipe, corpus, unknown, tmp_path, capsys):
    quick = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0)
    run = finetune(recipe, unknown, tmp_path / "run", config=quick, tokenizer=corpus, device="cpu", progress=False)
    (note,) = [note for note in run.notes if "unknown" in note]
    assert note.startswith("test: ")
    assert f"such as '{LONG}'" in note
    (said,) = [note for note in evaluate(run.path, data=unknown.test, device="cpu")["notes"] if "unknown" in note]
    assert said.removeprefix("data") == note.removeprefix("test")
    found = check_task(unknown, tokenizer=corpus)
    hidden = {split.split: split.hidden for split in found.splits}
    assert (hidden["train"].hidden, hidden["dev"].hidden) == (0, 0)
    assert hidden["test"].hidden % len(LONG) == 0
    assert [warning for warning in found.warnings if LONG in warning]
    assert all(split.hidden is None for split in check_task(unknown).splits)  # no tokenizer, no tokens
    capsys.readouterr()
    assert run_cli(["predict", str(run.path), LONG, "--device", "cpu"]) == 0
    told = capsys.readouterr().err
    assert f"1 of 1 tokens (100.0 %) are unknown and hide {len(LONG)} of {len(LONG)} characters" in told


def test_each_text_counts_once_as_a_corpus_would_have_it(corpus, unknown):
    examples = list(unknown.read(unknown.test))
    once, twice = (hidden_notes(Tokenizer.load(corpus), {"test": own}) for own in (examples, examples * 2))
    assert once == twice
    assert hidden_notes(Tokenizer.load(corpus), {"train": list(unknown.read(unknown.train))}) == []


def test_all_texts_of_an_example_count_and_each_once(corpus):
    tokenizer = Tokenizer.load(corpus)
    pairs = [LabelledText(1, ("apple", LONG), "a"), LabelledText(2, (LONG, f"saw {LONG[:-1]}"), "b")]
    assert hidden_in(tokenizer, pairs).hidden == 2 * len(LONG) - 1


def test_words_of_sentences_count_wherever_they_stand(corpus):
    """A word that stands often in a file is read often."""
    tokenizer = Tokenizer.load(corpus)
    words = [("saw", "apple", "saw"), ("saw", "apple", LONG), ("apple", LONG, "saw")]
    found = hidden_in(tokenizer, [TaggedSentence(line, own, tuple("NVN")) for line, own in enumerate(words)])
    assert found.hidden == 2 * len(LONG)
    assert found == tokenizer.hidden([" ".join(own) for own in words])
