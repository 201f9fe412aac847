"""A text with [MASK] is read as pre-training shows a text with that token hidden."""

import numpy as np
import pytest
from tests.untrained_runs import untrained

from bakeoff.generation.prompts import MASK, encoded
from bakeoff.generation.text_around_masks import encoded_around
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.using.filling import Filler

TEXT = "The old river, and the (green) stone: the window is open."
WORDS = ["old", "river", "and", "green", "stone", "window", "open"]


@pytest.fixture(scope="module", params=["unigram", "wordpiece", "byte_bpe"])
def tokenizer(request):
    size = {"byte_bpe": 400}.get(request.param, 100)
    return Tokenizer.train(TokenizerConfig(kind=request.param, size=size), [f"{TEXT} {TEXT}"] * 50)


def hidden(word, tokenizer):
    """The ids of the text with those of a word hidden, as objectives hide tokens: in the ids of the whole text."""
    (placed,) = tokenizer.encode_placed([TEXT])
    (whole, _) = tokenizer.encode([TEXT])[0]
    assert np.array_equal(placed.ids, whole)
    begin, end = TEXT.index(word), TEXT.index(word) + len(word)
    begin -= TEXT[begin - 1] == " "  # which is of the word, as tokens are
    inside = [first < end and last > begin for first, last in zip(placed.begin, placed.end, strict=True)]
    row = []
    for token, own in zip(whole.tolist(), inside, strict=True):
        if not own:
            row.append(token)
        elif not row or row[-1] != tokenizer.mask:
            row.append(tokenizer.mask)  # a span is one mask
    return row


@pytest.mark.parametrize("word", WORDS)
def test_ids_are_those_of_the_text_with_the_word_hidden(word, tokenizer):
    before, behind = TEXT.split(word, 1)
    first, last = encoded_around([before, behind], tokenizer)
    assert [*first.tolist(), tokenizer.mask, *last.tolist()] == hidden(word, tokenizer)


def test_prompts_of_what_writes_are_read_so(tokenizer, corpus, tmp_path):
    run = untrained("bart-tiny", corpus, tmp_path / "run")
    (objective, *_) = run.recipe.objective
    for word in WORDS:
        row = encoded(TEXT.replace(word, MASK, 1), tokenizer, run)
        assert row == [*objective.before_source(tokenizer), *hidden(word, tokenizer), tokenizer.separator]


def test_what_is_filled_is_read_so(tokenizer, corpus, tmp_path, monkeypatch):
    run = untrained("bert-tiny", corpus, tmp_path / "run", **{"input.length": 128})
    read = []
    filler = Filler(run, run.load())
    monkeypatch.setattr(filler, "_tokenizer", tokenizer)
    for word in WORDS:
        ids = filler._row(1, TEXT.replace(word, MASK, 1)).ids.tolist()
        read.append(ids[1:-1])
    assert read == [hidden(word, tokenizer) for word in WORDS]


def test_texts_without_words_around_their_masks(tokenizer):
    assert all(len(part) == 0 for part in encoded_around(["", " ", "", "  "], tokenizer))
    (_, glued, _), ((alone, _),) = encoded_around(["", "stone", ""], tokenizer), tokenizer.encode(["stone"])
    assert tokenizer.decode(glued).strip().removeprefix("##") == tokenizer.decode(alone).strip() == "stone"
    (whole,) = encoded_around(["The old "], tokenizer)
    assert np.array_equal(whole, tokenizer.encode(["The old "])[0][0])  # without a mask a text stays as it is


def test_what_follows_an_unknown_word_keeps_its_own_unknown_signs():
    """Where one unknown token stands for several signs, those after the mask are not counted to the word before."""
    tokenizer = Tokenizer.train(TokenizerConfig(kind="unigram", size=100), [TEXT] * 50)
    ids = tokenizer.encode(["\u2603\u2602 stone"])[0][0].tolist()
    assert ids.count(tokenizer.unknown) == 1
    before, behind = encoded_around(["old \u2603 ", "\u2602 stone"], tokenizer)
    assert tokenizer.unknown in before
    assert behind.tolist() == [tokenizer.unknown, *tokenizer.encode(["stone"])[0][0].tolist()]
