"""Ranks against a naive count over all orders of what ties."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.vectors.retrieval import PartnerRanks, retrieve


def naive(pairs, value, at):
    """Each distinct pair alone: every order of the candidates that the similarities allow is equally likely."""
    partners = sorted({partner for _, partner in pairs})
    recall, ranks = {k: [] for k in at}, []
    for text, right in sorted(set(pairs)):
        others = [each for each in partners if each == right or (text, each) not in pairs]
        orders = [
            order for order in permutations(others) if all(value(text, a) >= value(text, b) for a, b in pairwise(order))
        ]
        places = [order.index(right) + 1 for order in orders]
        ranks.append(sum(Fraction(1, place) for place in places) / len(places))
        for k in at:
            recall[k].append(Fraction(sum(place <= k for place in places), len(places)))
    count = len(ranks)
    shares = {k: float(sum(values) / count) for k, values in recall.items()}
    return PartnerRanks(count, len(partners), shares, float(sum(ranks) / count))


letters = st.sampled_from("abcd")


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(st.tuples(letters, st.sampled_from("vwxyz")), min_size=1, max_size=8),
    values=st.lists(st.integers(-1, 1), min_size=20, max_size=20),
    chunk=st.integers(1, 4),
)
def test_ranks_are_the_means_over_all_orders(pairs, values, chunk):
    def value(text, partner):
        return values["abcd".index(text) * 5 + "vwxyz".index(partner)] / 4

    def similarities(texts, partners):
        for first in range(0, len(texts), chunk):
            yield np.array([[value(t, p) for p in partners] for t in texts[first : first + chunk]], np.float32)

    found, expected = retrieve(pairs, similarities, (1, 2, 9)), naive(pairs, value, (1, 2, 9))
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(
        [*found.recall.values(), found.reciprocal_rank], [*expected.recall.values(), expected[3]]
    )
    assert list(found.recall) == [1, 2, 9]


def test_finding_all_alike_is_chance_and_rounding_decides_nothing():
    pairs = [(f"text {number}", f"partner {number}") for number in range(50)]
    generator = np.random.default_rng(0)

    def similarities(texts, partners):
        yield (0.5 + 1e-7 * generator.random((len(texts), len(partners)))).astype(np.float32)

    found = retrieve(pairs, similarities, (1, 5))
    np.testing.assert_allclose([found.recall[1], found.recall[5]], [1 / 50, 5 / 50])
    np.testing.assert_allclose(found.reciprocal_rank, np.mean([1 / rank for rank in range(1, 51)]))
