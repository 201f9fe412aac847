import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bakeoff.randomness.order import STORED_BELOW, examples_of, permute


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


def chance_of_positions(orders):
    """P-value of a chi-square over the table of position and example.

    A permutation's table has one entry a row and column, so that the (n - 1)^2 directions in which it can differ from
    the mean all have the variance 1 / (n - 1).
    """
    count, size = orders.shape
    table = np.bincount((orders + size * np.arange(size)).ravel(), minlength=size * size)
    statistic = ((table - count / size) ** 2).sum() * (size - 1) / count
    return stats.chi2.sf(statistic, (size - 1) ** 2)


def chance_of_successors(orders):
    """P-value of a chi-square over the table of each example and the one that follows it.

    The entries of one permutation's table depend on each other: two of them are 1 together with a probability of
    1 / (n (n - 1)), or never if they share a row or a column or are each other's reverse. The sum of squares is
    compared with the scaled chi-square distribution that has the mean and the variance which follow (Satterthwaite).
    """
    count, size = orders.shape
    table = np.bincount((orders[:, :-1] * size + orders[:, 1:]).ravel(), minlength=size * size).reshape(size, size)
    pairs = size * (size - 1)
    statistic = ((table - count / size)[~np.eye(size, dtype=bool)] ** 2).sum() / count
    mean = pairs * (1 / size - 1 / size**2)
    apart = pairs - 1 - 2 * (size - 2) - 1  # other pairs than one itself, its row, its column and its reverse
    squares = (1 / size - 1 / size**2) ** 2 + (2 * (size - 2) + 1) / size**4 + apart * (1 / pairs - 1 / size**2) ** 2
    scale = pairs * squares / mean
    return stats.chi2.sf(statistic / scale, mean / scale)


def chance_of_next_epochs(orders):
    """P-value of a chi-square over the places that an example has in two epochs that follow each other."""
    places = np.argsort(orders, axis=1)
    return chance_of_positions(np.take_along_axis(places[1:], orders[:-1], axis=1)[::2])


CHANCES = (chance_of_positions, chance_of_successors, chance_of_next_epochs)


@pytest.mark.parametrize(
    "sizes",
    [
        range(2, 31),
        *(pytest.param(range(*ends), marks=pytest.mark.slow) for ends in ((31, 61), (61, 81), (81, 101))),
        [1000],
    ],
    ids=str,
)
def test_orders_are_uniform(sizes):
    """Each example once an epoch, at any place, after any other one, whatever its place in the epoch before."""
    for size in sizes:
        epochs = max(300, 5 * size)  # at least five of each entry of the tables
        orders = np.stack([permute(np.arange(size), size, seed=size, epoch=epoch) for epoch in range(epochs)])
        assert (np.sort(orders, axis=1) == np.arange(size)).all()
        if size >= 20:
            assert len(np.unique(orders, axis=0)) == epochs
        for chance in CHANCES:
            assert 1e-5 < chance(orders) < 1 - 1e-5, (size, chance.__name__)


@pytest.mark.parametrize("size", [2, 3, 5, 10, 50])
def test_the_first_orders_of_all_seeds_are_uniform(size):
    orders = np.stack([permute(np.arange(size), size, seed, 0) for seed in range(3000)])
    for chance in CHANCES:
        assert 1e-5 < chance(orders) < 1 - 1e-5, chance.__name__


@pytest.mark.parametrize("size", [2, 3, 5, 20, 100])
def test_the_chances_are_those_of_true_shuffles(size):
    """Of a generator's own permutations they are uniform; each finds the order that is wrong in its way."""
    generator = np.random.default_rng(0)
    several = [generator.permuted(np.tile(np.arange(size), (5 * size + 400, 1)), axis=1) for _ in range(100)]
    for chance in CHANCES:
        assert stats.kstest([chance(orders) for orders in several], "uniform").pvalue > 1e-4
    if size >= 20:
        orders = several[0]
        moved = (np.arange(size) + generator.integers(size, size=(len(orders), 1))) % size
        assert chance_of_successors(moved) < 1e-9  # every place equally often, but always the same one after it
        assert chance_of_positions(np.where(orders[:, :1] < size // 2, np.sort(orders, axis=1), orders)) < 1e-9
        assert chance_of_next_epochs(np.repeat(orders, 2, axis=0)) < 1e-9


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


@pytest.mark.parametrize("size", [1, 5, 23, 1000])
def test_any_number_of_workers_reads_the_same_batches(size):
    """Each worker asks for its own part of every batch: together they have what one alone has, over several epochs."""
    batch, steps = 24, 8
    whole, epochs = examples_of(0, steps * batch, size, seed=4)
    for workers in (1, 2, 3, 8, 24):
        part = batch // workers
        starts = range(0, steps * batch, part)  # worker after worker, step after step
        found = [examples_of(start, part, size, seed=4) for start in starts]
        assert np.array_equal(np.concatenate([own for own, _ in found]), whole)
        assert np.array_equal(np.concatenate([own for _, own in found]), epochs)
    for epoch in range(steps * batch // size):
        assert np.array_equal(np.sort(whole[epochs == epoch]), np.arange(size))
