"""Stretches of a text against loops over it; no word comes twice, so that a token says where it stands."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest

from bakeoff.corpus.extract import STRETCHES, Extract
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Text of 60 documents of one to six sentences, the longest sentence of 150 words."""
    folder = tmp_path_factory.mktemp("distinct")
    generator, lines, word = np.random.default_rng(0), [], 0
    for document in range(60):
        for count in generator.integers(1, 20, generator.integers(1, 7)).tolist():
            count = 150 if document == 30 else count
            lines.append(" ".join(f"w{word + i}" for i in range(count)))
            word += count
        lines.append("=")
    (folder / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    config = TokenizerConfig(kind="word", size=word + 5)
    made = prepare(folder / "text.txt", folder / "c", tokenizer=config, document_separator="^=$", workers=0)
    return made.train


@pytest.mark.parametrize("size", [3, 25, 60, 400])
def test_a_stretch_is_whole_sentences_of_the_text(split, size):
    found = Extract(split, STRETCHES * size)
    place = {token: i for i, token in enumerate(split.tokens.tolist())}
    own = np.array([place[token] for token in found.tokens.tolist()])
    assert len(own) <= STRETCHES * size
    assert (np.diff(own) > 0).all()  # nothing twice
    joins = [0, *(np.flatnonzero(np.diff(own) > 1) + 1).tolist(), len(own)]
    assert 2 <= len(joins) - 1 <= STRETCHES
    assert own[0] == 0
    assert own[-1] > 0.7 * len(split.tokens)
    sentences = set(np.flatnonzero(np.isin(own, split.sentences)).tolist()) | set(joins)
    assert found.sentences.tolist() == sorted(sentences)
    documents = set(np.flatnonzero(np.isin(own, split.documents)).tolist()) | set(joins)
    assert found.documents.tolist() == sorted(documents)
    for first, stop in pairwise(joins):
        assert own[first] in split.sentences
        assert own[stop - 1] + 1 in split.sentences or stop - first == size  # a sentence longer than a stretch
    numbers = np.searchsorted(split.documents, own[found.documents[:-1]], side="right") - 1
    assert found.originals.tolist() == split.originals[numbers].tolist()
    with patch.object(split, "starts_word", lambda places: places % 3 == 0):
        assert np.array_equal(Extract(split, STRETCHES * size).starts_word(np.arange(len(own))), own % 3 == 0)
