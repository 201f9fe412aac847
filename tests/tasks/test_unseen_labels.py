"""Labels of a scored file that no example to learn from has: wrong answers where a row has several labels."""

import math

import pytest
from keyword_task import KEYWORDS

from bakeoff.errors import UserError
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict

QUIET = {"device": "cpu", "progress": False}
TAGS = {word: group for group, words in KEYWORDS.items() for word in words}


def write_tagged(path, tags):
    """Sentences of one keyword each, in columns."""
    path.write_text("".join(f"{word}\t{tag}\n\n" for word, tag in tags))
    return path


@pytest.fixture(scope="module")
def tagger(recipe, corpus, tmp_path_factory):
    """A tagger, whose dev has a tag that train lacks."""
    folder = tmp_path_factory.mktemp("tagger")
    known = list(TAGS.items())
    dev = write_tagged(folder / "dev.conll", [*known, (known[0][0], "rare")])
    files = {name: write_tagged(folder / f"{name}.conll", known * 4) for name in ("train", "test")}
    task = TaggingConfig(**files, dev=dev)
    config = FinetuneConfig(learning_rate=[3e-3], epochs=8, least_steps=0, evaluations=2)
    return finetune(recipe, task, folder / "run", config=config, tokenizer=corpus, **QUIET)


def test_no_output_stands_for_a_tag_that_train_lacks(tagger):
    assert tagger.classes == sorted(KEYWORDS)
    assert "1 label of dev missing in train: rare" in tagger.notes
    assert tagger.scores["test"]["accuracy"] == 1
    assert tagger.scores["dev"]["accuracy"] == pytest.approx(len(TAGS) / (len(TAGS) + 1))


def test_another_file_with_such_a_tag_is_scored_and_says_so(tagger, tmp_path):
    known = list(TAGS.items())
    alone = evaluate(tagger.path, data=write_tagged(tmp_path / "known.conll", known), device="cpu")
    other = write_tagged(tmp_path / "other.conll", [*known, ("apple", "X"), ("apple", "X"), ("apple", "Y,Z")])
    found = evaluate(tagger.path, data=other, device="cpu")
    assert found["scores"]["accuracy"] == pytest.approx(len(known) / (len(known) + 3))
    assert found["loss"] == pytest.approx(alone["loss"], abs=1e-6)  # that of the words whose tags are known
    assert math.isfinite(found["loss"])
    assert list(found["labels"])[-2:] == ["X", "Y,Z"]
    assert (found["labels"]["X"]["count"], found["labels"]["X"]["f1"]) == (2, 0)
    expected = "other.conll has labels that do not occur in what the run has learnt, and where one stands every answer"
    assert [note for note in found["notes"] if note.startswith(expected)] == [f'{expected} is wrong: X (2), "Y,Z" (1)']
    assert "notes" not in alone
    (record,) = predict(tagger.path, ["apple"], device="cpu")
    assert record["tags"] == [TAGS["apple"]]


def test_a_file_of_other_tags_is_refused(tagger, tmp_path):
    """As where the column of another scheme was meant."""
    with pytest.raises(UserError, match=r"other.conll: none of its labels \(NN\) occurs in what the run has learnt"):
        evaluate(tagger.path, data=write_tagged(tmp_path / "other.conll", [("apple", "NN")]), device="cpu")
