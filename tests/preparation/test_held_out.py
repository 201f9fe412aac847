"""What is held out, by pieces of text as they are read: whole documents, or runs of sentences."""

from itertools import groupby

import pytest

from bakeoff.preparation.planning.held_out import (
    FEWEST_DOCUMENTS,
    FEWEST_HELD_OUT,
    IDENTITY,
    TRAIN,
    VALIDATION,
    Survey,
    assign,
    threshold,
)
from bakeoff.reading.pieces import CONTINUATION, DOCUMENT, TextPiece

HALF = 1 << 63
"""The hash below which half of all documents are held out."""


def by_sentence(pieces, validation, seed):
    """The split of each piece that comes out, with its text."""
    survey = Survey(1, len(pieces), sum(len(piece.text) for piece in pieces), 0, sentences=True)
    return [(split, piece.text) for split, piece in assign(pieces, survey, validation, seed)]


def long_text(sentences=120):
    """Sentences of unlike lengths, in one text, which ends with a full stop."""
    return " ".join(f"Number {i} " + "goes on " * (3 + i % 11) + "and ends." for i in range(sentences))


def cut(text, length):
    """The text as a paragraph that comes in pieces, which end between words but within sentences."""
    pieces, start = [], 0
    while start < len(text):
        end = text.find(" ", start + length)
        end = len(text) if end < 0 else end
        pieces.append(TextPiece(CONTINUATION if pieces else DOCUMENT, text[start:end]))
        start = end
    return pieces


@pytest.mark.parametrize("seed", range(12))
def test_a_sentence_that_goes_on_in_the_next_piece_stays_in_its_split(seed):
    text = long_text()
    splits = [split for split, part in by_sentence(cut(text, 700), 0.3, seed) for _ in part.replace(" ", "")]
    assert len(splits) == len(text.replace(" ", ""))
    assert {*splits} == {TRAIN, VALIDATION}
    start = 0
    for sentence in text.split(". "):
        end = start + len(sentence.replace(" ", "")) + (not sentence.endswith("."))
        assert len({*splits[start:end]}) == 1, sentence
        start = end


def test_a_text_without_ends_of_sentences_is_cut_at_its_pieces():
    pieces = cut("word " * 4000, 500)
    found = {seed: [split for split, _ in by_sentence(pieces, 0.3, seed)] for seed in range(6)}
    for splits in found.values():
        assert 0.1 < sum(split == VALIDATION for split in splits) / len(splits) < 0.6


@pytest.mark.parametrize("validation", [0.1, 0.5, 0.9])
def test_the_smaller_split_comes_in_runs_of_about_a_page(validation):
    text = long_text(1500)
    parts = by_sentence(cut(text, 5000), validation, 3)
    smaller = VALIDATION if validation < 0.5 else TRAIN
    runs = [
        sum(len(part) for _, part in each) for split, each in groupby(parts, lambda one: one[0]) if split == smaller
    ]
    assert sum(runs) == pytest.approx(min(validation, 1 - validation) * len(text), rel=0.2)
    assert sum(runs) / len(runs) > 2000


def test_long_documents_that_begin_alike_are_in_one_split():
    """Copies with another end, such as another date, of documents that are longer than what identifies them."""
    pieces, together = [], 12
    for number in range(together):
        for end in range(3):
            pieces.append(TextPiece(DOCUMENT, f"document {number} " + "x" * (IDENTITY + 5)))
            pieces.append(TextPiece(CONTINUATION, f" {end} " + "y" * 3 * IDENTITY))
            pieces.append(TextPiece(CONTINUATION, f" {end}" * IDENTITY))
    survey = Survey(FEWEST_DOCUMENTS, len(pieces), 0, HALF)
    splits = [split for split, piece in assign(pieces, survey, 0.5, 0) if piece.opens == DOCUMENT]
    assert {*splits} == {TRAIN, VALIDATION}
    for number in range(together):
        assert len({*splits[3 * number : 3 * number + 3]}) == 1


def test_of_a_sample_of_documents_the_fewest_are_held_out():
    known = [(index << 50, 100) for index in range(1, 1000)]
    below, held = threshold(known, 1e-9, complete=False)
    assert (sum(digest < below for digest, _ in known), held) == (FEWEST_HELD_OUT, 100 * FEWEST_HELD_OUT)
