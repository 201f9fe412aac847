"""Variances over seeds that recipes of a table moderate for each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats

from bakeoff.comparison.statistics.groups import Group, drawn_anew, moderate
from bakeoff.comparison.statistics.seed_noise import FITTING, INFINITE, PRIOR_MOST, moderated

VARIANCES = st.lists(st.floats(0.01, 100), min_size=3, max_size=9)


def squeeze_var(variances, freedom, most):
    """limma's fitFDist and squeezeVar (Smyth 2004), written from the paper, with a bound for the prior's freedom."""
    e = np.log(variances) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = np.var(e, ddof=1) - special.polygamma(1, freedom / 2)
    prior = np.inf
    if excess > 0:
        prior = 2 * np.exp(optimize.brentq(lambda x: special.polygamma(1, np.exp(x)) - excess, -20, 20))
    prior = min(prior, most)
    scale = np.exp(np.mean(e) + special.digamma(prior / 2) - np.log(prior / 2))
    return prior, scale


def by_hand(variances, freedom):
    """The moderated variances, recipe by recipe."""
    most = min(INFINITE, PRIOR_MOST * (len(variances) - 2.5) * freedom)
    prior, scale = squeeze_var(variances, freedom, most)
    found = []
    for i, own in enumerate(variances):
        without, level = squeeze_var(np.delete(variances, i), freedom, most)
        chance = stats.f.sf(own / level, freedom, without)
        weight = min(prior, without) * min(1, FITTING * chance)
        found.append(((weight * scale + freedom * own) / (weight + freedom), weight + freedom))
    return np.array(found).T


@pytest.mark.parametrize("freedom", [2.0, 4.0, 8.0])
@given(values=VARIANCES)
@settings(max_examples=40, deadline=None)
def test_the_published_formulas(freedom, values):
    values = np.array(values)
    found = moderated(values, np.full(len(values), freedom), np.zeros(len(values)))
    expected = by_hand(values, freedom)
    assert found.variance == pytest.approx(expected[0], rel=1e-4)
    assert found.freedom == pytest.approx(expected[1], rel=1e-3)


@given(values=VARIANCES, scale=st.floats(1e-4, 1e4))
@settings(max_examples=40, deadline=None)
def test_another_unit_is_no_other_verdict(values, scale):
    values = np.array(values)
    freedom, none = np.full(len(values), 2.0), np.zeros(len(values))
    one, other = moderated(values, freedom, none), moderated(scale * values, freedom, none)
    assert other.variance == pytest.approx(scale * one.variance, rel=1e-6)
    assert other.freedom == pytest.approx(one.freedom, rel=1e-6)


def test_equal_recipes_are_known_better_together_and_an_outlier_stays_as_it_is():
    equal = moderated(np.ones(6), np.full(6, 2.0), np.zeros(6))
    assert (equal.freedom > 10).all()
    unlike = moderated(np.array([100.0, 1, 1, 1, 1, 1]), np.full(6, 2.0), np.zeros(6))
    assert unlike.variance[0] == pytest.approx(100, rel=0.02)
    assert unlike.freedom[0] < 2.05


@pytest.mark.parametrize("count", [1, 2])
def test_two_recipes_say_nothing_of_each_other(count):
    found = moderated(np.arange(1.0, count + 1), np.full(count, 2.0), np.zeros(count))
    assert found.variance.tolist() == list(range(1, count + 1))
    assert (found.freedom == 2).all()


def test_no_variance_is_below_what_its_rows_make():
    found = moderated(np.array([0.0, 1, 2, 3]), np.full(4, 2.0), np.array([0.5, 0.5, 0.5, 9]))
    assert found.variance[0] >= 0.5
    assert found.variance[3] == 9
    none = moderated(np.zeros(4), np.full(4, 2.0), np.zeros(4))
    assert np.isfinite(none.variance).all()
    assert np.isfinite(none.freedom).all()


def test_many_tables_at_once_are_each_by_itself():
    random = np.random.default_rng(0)
    values, floors = random.chisquare(2, (20, 5)), 0.1 * random.random((20, 5))
    freedom = np.full(5, 2.0)
    together = moderated(values, freedom, floors)
    for i in range(20):
        alone = moderated(values[i], freedom, floors[i])
        assert together.variance[i] == pytest.approx(alone.variance)
        assert together.freedom[i] == pytest.approx(alone.freedom)


def test_what_is_drawn_anew_is_the_residual_of_two_ways():
    random = np.random.default_rng(1)
    by_seed = random.normal(size=(4, 9)) + random.normal(size=9) + random.normal(size=(4, 1))
    design = np.array(
        [[i == s for s in range(4)] + [j == r for r in range(9)] for i in range(4) for j in range(9)], float
    )
    rest = by_seed.ravel() - design @ np.linalg.lstsq(design, by_seed.ravel(), rcond=None)[0]
    assert drawn_anew(by_seed) == pytest.approx(rest @ rest / (3 * 8) / 9)
    assert drawn_anew(by_seed[:1]) == drawn_anew(by_seed[:, :1]) == 0


def test_groups_of_one_seed_are_left_alone_and_others_moderated():
    random = np.random.default_rng(2)

    def group(seeds):
        rows = random.integers(0, 2, (seeds, 30)).astype(float)
        return Group.of({seed: [(row.mean(), row)] for seed, row in enumerate(rows)})

    groups = {"one": group(1), **{str(i): group(3) for i in range(4)}}
    found = moderate(groups)
    assert found["one"].moderated is None
    for label in "0123":
        assert found[label].seed_variance.freedom > 2
        assert found[label].scores == groups[label].scores
    assert moderate(found) == found
