import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.text.word_order import NgramShuffle, shuffle_ngrams
from bakeoff.text.words import words_before
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)


def shuffled(sentence, ngram=1, seed=0, number=0):
    return shuffle_ngrams([[sentence]], number, NgramShuffle(ngram, seed))[0][0]


def words_of(text):
    starts = np.flatnonzero(np.diff(words_before(text))).tolist()
    return [text[a:b].strip() for a, b in pairwise([*starts, len(text)])]


def test_no_word_keeps_its_place():
    words = [f"w{i}" for i in range(12)]
    for number in range(50):
        moved = shuffled(" ".join(words), number=number).split(" ")
        assert sorted(moved) == sorted(words)
        assert all(one != other for one, other in zip(moved, words, strict=True))


def test_every_word_comes_to_every_other_place_equally_often():
    words = [f"{i}" for i in range(5)]
    counts = np.zeros((5, 5))
    for number in range(4_000):
        for place, word in enumerate(shuffled(" ".join(words), number=number).split()):
            counts[int(word), place] += 1
    assert not counts.diagonal().any()
    assert stats.chisquare(counts[~np.eye(5, dtype=bool)]).pvalue > 1e-5


@pytest.mark.parametrize("ngram", [2, 3, 4])
def test_ngrams_stay_together(ngram):
    seen = Counter()
    for number in range(300):
        moved = [int(word) for word in shuffled(" ".join(map(str, range(11))), ngram, number=number).split()]
        assert sorted(moved) == list(range(11))
        assert moved != list(range(11))
        runs = np.split(moved, np.flatnonzero(np.diff(moved) != 1) + 1)
        # Each n-gram is in a run, and no n words between n-grams are left without one.
        assert sum(len(run) >= ngram for run in runs) >= 1
        seen.update(int(run[0]) for run in runs if len(run) >= ngram)
    assert len(seen) >= 11 - ngram  # they are found at any place


def test_short_sentences():
    assert shuffled("One.") == "One."
    assert shuffled(" Two words.") == " words. Two"
    assert shuffled("of two", ngram=3) == "two of"  # no n-gram fits: single words
    assert shuffled("of three words", ngram=3) == "of three words"
    assert shuffled("") == ""


@given(st.text("ab 房间。é3", max_size=30), st.integers(1, 4), st.integers(0, 9))
def test_words_stay_words(text, ngram, number):
    """Whatever stands together: spaces where two words would become one, none of them lost, the opening kept."""
    text = "\n" + " ".join(text.split()) if number % 2 else " ".join(text.split())
    moved = shuffled(text, ngram, number=number)
    assert sorted(words_of(moved)) == sorted(words_of(text))
    assert moved.startswith("\n") == text.startswith("\n")
    assert "  " not in moved


def test_the_result_does_not_depend_on_how_text_is_cut():
    pieces = [[f"Sentence {i} {j} has some words, {i + j} perhaps." for j in range(3)] for i in range(20)]
    shuffle = NgramShuffle(1, 5)
    whole = shuffle_ngrams(pieces, 100, shuffle)
    assert whole[:7] + shuffle_ngrams(pieces[7:], 107, shuffle) == whole
    assert shuffle_ngrams(pieces, 100, NgramShuffle(1, 6)) != whole
    assert shuffle_ngrams([pieces[0]], 0, shuffle) != shuffle_ngrams([pieces[0]], 1, shuffle)
    assert shuffle_ngrams([], 0, shuffle) == []


def sentences_of(split, tokenizer):
    return [tokenizer.decode(split.tokens[a:b]) for a, b in zip(split.sentences[:-1], split.sentences[1:], strict=True)]


@pytest.mark.parametrize("ngram", [1, 2])
def test_a_control_corpus(tmp_path, ngram):
    """The same tokenizer, documents, sentences and words as the corpus in its own order, whatever the workers."""
    texts = [f"Number {i} comes first here. 房间很大。 Then {i} more\nwords follow it." for i in range(250)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    plain = prepare(tmp_path / "a.jsonl", tmp_path / "plain", tokenizer=BYTES, validation=0.1)
    first, second = (
        prepare(
            tmp_path / "a.jsonl",
            tmp_path / str(workers),
            tokenizer=BYTES,
            validation=0.1,
            shuffle_ngrams=ngram,
            workers=workers,
        )
        for workers in (0, 2)
    )
    assert first.manifest == second.manifest
    assert first.fingerprint != plain.fingerprint
    assert first.tokenizer.to_string() == plain.tokenizer.to_string()
    assert first.manifest.options["shuffle_ngrams"] == first.summary()["shuffled_ngrams"] == ngram
    assert first.manifest.options["seed"] == 0
    assert plain.summary()["shuffled_ngrams"] is None
    for name in ("train", "validation"):
        before, after = (sentences_of(getattr(corpus, name), plain.tokenizer) for corpus in (plain, first))
        assert [sorted(words_of(text)) for text in before] == [sorted(words_of(text)) for text in after]
        assert np.mean([one != other for one, other in zip(before, after, strict=True)]) > 0.9
        assert getattr(first, name).counts.documents == getattr(plain, name).counts.documents
        assert getattr(first, name).counts.words == getattr(plain, name).counts.words


def test_bad_size(tmp_path):
    (tmp_path / "a.txt").write_text("some text")
    with pytest.raises(UserError, match="shuffle_ngrams: input should be greater than or equal to 1"):
        prepare(tmp_path / "a.txt", tmp_path / "corpus", tokenizer=BYTES, shuffle_ngrams=0)
