"""A part of a corpus is measured whole: every token once, in its order, against a plain loop over the model."""

import math

import pytest
import torch
from tests.conftest import sentences, shrink
from tests.untrained_runs import untrained

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.preparation.prepare import prepare
from bakeoff.row import Row
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.stages import make_batches


def prepared(folder, kind):
    """A corpus with a test part of its own, whose lines are pre-tokenised."""
    for name, count, seed in (("train", 400, 1), ("valid", 40, 2), ("test", 33, 3)):
        text = "".join(line.replace(".", " .") + "\n" for line in sentences(count, seed))
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    config = TokenizerConfig(kind=kind, size=200, end_of_line=True)
    files = {"validation": [folder / "valid.txt"], "test": [folder / "test.txt"]}
    return prepare(folder / "train.txt", folder / "corpus", tokenizer=config, workers=0, **files)


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("official"), "whitespace")


@pytest.fixture(scope="module")
def spelt(tmp_path_factory):
    """The same in characters, of which a word has several."""
    return prepared(tmp_path_factory.mktemp("spelt"), "character")


@pytest.mark.parametrize(
    ("name", "tokens"),
    [(name, "official") for name in ("gpt-tiny", "gcnn-tiny", "lstm-lm-tiny", "transformer-xl-tiny")]
    + [("gpt-tiny", "spelt")],
)
def test_the_perplexity_per_word_is_that_of_every_token_of_the_part(name, tokens, request, tmp_path):
    corpus = request.getfixturevalue(tokens)
    run = untrained(name, corpus, tmp_path / "run")
    found = evaluate(run.path, corpus=corpus.path, split="test", device="cpu")
    text = corpus.split("test")
    module = run.load()
    stream = torch.tensor([[corpus.tokenizer.separator, *text.tokens.tolist()]])
    length, total = run.recipe.input.length, 0.0
    state = module.model.start(1)
    with torch.no_grad():
        for begin in range(0, stream.shape[1] - 1, length):
            labels = stream[0, begin + 1 : begin + 1 + length]
            rows = stream[:, begin : begin + len(labels)]
            if run.recipe.input.continues:
                hidden, state = module.model(Row(rows), state, banded=False)
            else:
                hidden = module.model(Row(rows))[0]
            scores = module.heads["clm"].log_probabilities(hidden[0], module.model.embedding.weight)
            total -= float(scores[torch.arange(len(labels)), labels].sum())
    words = 33 * 8  # of a line: six words, the full stop, and its end
    assert found["words"] == words
    assert found["targets"]["clm"] == len(text.tokens)
    assert (len(text.tokens) == words) == (tokens == "official")
    assert math.log(found["perplexity_per_word"]["clm"]) == pytest.approx(total / words, rel=1e-4)
    assert found["examples"] == found["of_examples"] == math.ceil((len(text.tokens) + 1) / length)


def test_a_sample_says_of_how_many_rows_and_gives_no_perplexity_per_word(official, tmp_path):
    run = untrained("gpt-tiny", official, tmp_path / "run")
    found = evaluate(run.path, corpus=official.path, split="test", examples=3, device="cpu")
    assert (found["examples"], found["of_examples"]) == (3, math.ceil((33 * 8 + 1) / 32))
    assert "perplexity_per_word" not in found


def test_rows_that_are_not_all_read_causally_give_no_perplexity_per_word(corpus, tmp_path):
    """As many of them as is said, each as in training, so that of either kind the loss is of some of the text."""
    opened = Corpus.open(corpus)
    run = untrained("gpt-bert-tiny", opened, tmp_path / "run", **{"input.length": 16})
    found = evaluate(run.path, corpus=corpus, overrides={"objective.0.causal": 0.5}, device="cpu")
    tokens = len(opened.validation.tokens)
    assert 0.3 * tokens < found["targets"]["clm"] < 0.7 * tokens
    assert found["losses"].keys() == {"mntp", "clm"}
    assert found["examples"] == found["of_examples"]
    assert "perplexity_per_word" not in found


@pytest.mark.parametrize("name", ["bert-tiny", "t5-tiny", "xlnet-tiny", "bart-tiny"])
def test_all_rows_are_those_of_a_sample_of_as_many(name, corpus):
    text = corpus if isinstance(corpus, Corpus) else Corpus.open(corpus)
    recipe = shrink(name)
    module = PretrainingModel(recipe, text.tokenizer.size)
    batches = make_batches(recipe, module, text, seed=3, split="validation")
    whole = [row.tolist() for part in batches.whole() for row in part.row.ids]
    assert len(whole) > 0.9 * batches.rows_an_epoch  # all, but for what does not fill the streams of both directions
    sample = [row.tolist() for part in batches.fixed(batches.rows_an_epoch) for row in part.row.ids]

    def texts(rows):
        return sorted(str([i for i in row if i != text.tokenizer.pad]) for row in rows)

    assert texts(whole) == texts(sample)


def test_a_part_that_is_not_there_is_refused(official, tmp_path):
    run = untrained("gpt-tiny", official, tmp_path / "run")
    with pytest.raises(UserError, match="has no split 'dev'; prepare the text again with --dev FILES"):
        evaluate(run.path, corpus=official.path, split="dev", device="cpu")
