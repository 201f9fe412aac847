import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bakeoff.corpus.order import STORED_BELOW, examples_of, permute


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**62), st.integers(0, 5))
def test_every_example_comes_once_an_epoch(size, seed, epoch):
    order = permute(np.arange(size), size, seed, epoch)
    assert np.array_equal(np.sort(order), np.arange(size))


@pytest.mark.parametrize("size", [STORED_BELOW, STORED_BELOW + 1, 100_003, 262_144])
def test_the_feistel_network_is_a_permutation(size):
    order = permute(np.arange(size), size, seed=5, epoch=2)
    assert np.array_equal(np.sort(order), np.arange(size))


def test_seeds_and_epochs_have_orders_of_their_own():
    positions = np.arange(1000)
    orders = {tuple(permute(positions, 1000, seed, epoch)) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_each_position_is_uniform_over_the_examples(size):
    seeds = 3000
    orders = np.stack([permute(np.arange(size), size, seed, 0) for seed in range(seeds)])
    for position in range(size):
        counts = np.bincount(orders[:, position], minlength=size)
        assert stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.parametrize("size", [1000, 100_000])
def test_which_example_follows_which_is_uniform(size):
    """The distance from an example to the next one, in 100 bins, over several keys."""
    counts = np.zeros(100, np.int64)
    for seed in range(20 if size < STORED_BELOW else 4):
        order = permute(np.arange(size), size, seed, 0)
        distance = (order[1:] - order[:-1]) % size - 1  # never zero: uniform over size - 1 distances
        counts += np.bincount(distance * 100 // (size - 1), minlength=100)
    edges = np.arange(101) * (size - 1) / 100
    expected = np.diff(np.ceil(edges)) / (size - 1) * counts.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-5


def test_the_sequence_of_epochs_does_not_depend_on_how_it_is_cut():
    whole, epochs = examples_of(0, 100, 23, seed=1)
    pieces = [examples_of(start, 10, 23, seed=1)[0] for start in range(0, 100, 10)]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert np.array_equal(epochs, np.arange(100) // 23)
    assert not np.array_equal(whole[:23], whole[23:46])
