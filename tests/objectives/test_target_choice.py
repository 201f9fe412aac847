"""The units of which targets are made: where they end, and how long they are."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bakeoff.objectives.target_choice import TargetChoice
from bakeoff.randomness.draws import Draws

ROWS, LENGTH = 3000, 60
WORDS = SimpleNamespace(starts_word=lambda places: places % 2 == 0)
"""A text whose words have two tokens each."""
CHOICES = {
    "whole words": {"whole_word": True},
    "runs of words": {"ngram": 4},
    "runs of tokens": {"ngram": 6, "of": "tokens"},
}
"""Those of XLNet's code, which end after a number of tokens, go on over all that stands between them."""


def units_of(sources, **options):
    draws = Draws(0, np.zeros(len(sources), np.int64), np.arange(len(sources)))
    return TargetChoice(0.2, **options).units(sources, WORDS, draws)


@pytest.mark.parametrize("options", CHOICES.values(), ids=CHOICES)
def test_no_unit_goes_on_where_the_text_does_not(options):
    """Neither over a special token nor from one segment into another, though that begins inside a word."""
    row = np.concatenate([np.arange(0, 20), [-1], np.arange(101, 121), np.arange(301, 320)])
    sources = np.tile(row, (ROWS, 1))
    units = units_of(sources, **options)
    segments = [units[:, :20], units[:, 21:41], units[:, 41:]]
    for before, after in pairwise(segments):
        assert before.max() > 0
        last, first = before.max(1), np.where(after < 0, units.max() + 1, after).min(1)  # -1 is no unit
        assert (last < first).all()


LENGTHS = {
    "inverse": lambda n: 1 / n,
    "geometric": lambda n: 0.7**n,
    "uniform": lambda n: np.ones(len(n)),
}


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("of", ["words", "tokens"])
def test_runs_have_the_lengths_of_their_distribution(lengths, of):
    units = units_of(np.tile(np.arange(LENGTH), (ROWS, 1)), ngram=4, lengths=lengths, stop=0.3, of=of)
    size = 2 if of == "words" else 1
    found = [np.bincount(row)[:3] for row in units]  # the first three of each row, which no end cuts
    counts = np.bincount(np.concatenate(found) // size, minlength=5)[1:]
    expected = LENGTHS[lengths](np.arange(1, 5))
    assert stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue > 1e-6
    assert (np.concatenate(found) % size == 0).all()
