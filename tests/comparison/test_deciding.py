"""Three answers, and what would decide the third."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from synthetic_results import make_results

from bakeoff.comparison.planning.asking import Asking, margin_of
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.verdict_words import found_in_half, what_would_decide
from bakeoff.comparison.statistics.deciding import deciding
from bakeoff.comparison.statistics.families import gain_pairs
from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.noise import CAUTION, LEVEL, Noise, in_common, noise_of
from bakeoff.comparison.statistics.pairs import all_pairs
from bakeoff.comparison.statistics.questions import Difference, decide

NOISES = st.builds(
    Noise,
    between=st.floats(1e-6, 1e-3),
    anew=st.floats(1e-6, 1e-3),
    rows=st.floats(1e-6, 1e-3),
    seed_freedom=st.floats(2, 50),
    row_freedom=st.floats(20, 5000),
    most_freedom=st.floats(4, 5000),
    seeds=st.integers(3, 9),
)


def group(right):
    return Group.of({seed: [(each.mean(), each.astype(float))] for seed, each in enumerate(right)}, None, 1.0)


def groups(random, skills, rows, seeds=5, spread=0.0):
    hard = random.normal(size=rows)
    made = {}
    for label, skill in skills.items():
        luck = random.normal(0, spread, (seeds, 1))
        right = hard + random.normal(0, 0.5, (seeds, rows)) + luck < skill
        runs = {seed: [(each.mean(), each.astype(float))] for seed, each in enumerate(right)}
        made[label] = Group.of(runs, None, 1.0)
    return made


def test_better_equivalent_and_undecided():
    made = groups(np.random.default_rng(0), {"a": 0.8, "b": 0.5, "c": 0.5, "d": 0.48}, 6000)
    found = {(each.first, each.second): each for each in all_pairs(made, asking=Asking(margin=0.03))}
    verdicts = {frozenset(pair): each.verdict for pair, each in found.items()}
    assert verdicts[frozenset("ab")] == verdicts[frozenset("ac")] == verdicts[frozenset("ad")] == "better"
    assert verdicts[frozenset("bc")] == "equivalent"
    narrow = {frozenset((each.first, each.second)): each for each in all_pairs(made, asking=Asking(margin=0.001))}
    assert narrow[frozenset("bc")].verdict == "undecided"
    assert narrow[frozenset("bc")].deciding.target == 0.001
    assert all(each.verdict != "equivalent" for each in all_pairs(made))


def test_what_would_decide_meets_the_correction_for_what_is_still_open():
    """By Holm the smallest p-value of three is multiplied by three, and the last one, once two are decided, by one."""
    noise = Noise(between=1e-4, anew=1e-5, rows=1e-4, seed_freedom=8, row_freedom=500, most_freedom=500, seeds=3)
    values = {"b": 1e-9, "c": 1e-9, "d": 0.3}.items()
    asked = [Difference(first="a", second=second, difference=0.1, p=p, noise=noise) for second, p in values]
    assert [each.verdict for each in decide(asked)] == ["better", "better", "undecided"]
    assert decide(asked)[2].deciding == deciding(noise, 0.1, 1)
    assert decide([*asked[1:], asked[2]])[2].deciding == deciding(noise, 0.1, 2)


def test_a_real_difference_within_the_margin_is_equivalent_and_not_better():
    made = groups(np.random.default_rng(1), {"a": 0.56, "b": 0.5}, 20_000)
    (pair,) = all_pairs(made, asking=Asking(margin=0.1))
    assert pair.real
    assert pair.verdict == "equivalent"
    assert not pair.better


@given(noise=NOISES, value=st.floats(-0.2, 0.2, allow_subnormal=False), margin=st.floats(0.001, 0.3))
@settings(max_examples=60, deadline=None)
def test_two_one_sided_tests(noise, value, margin):
    """The oracle has both of them; the larger p-value counts."""
    both = [stats.t.sf((margin - sign * value) / noise.error, noise.freedom) for sign in (1, -1)]
    assert noise.p_within(value, margin) == pytest.approx(min(1, CAUTION * max(both)))
    low, high = noise.around(value)
    assert (low <= 0 <= high) == (noise.p(value) >= LEVEL - 1e-9) or noise.p(value) == pytest.approx(LEVEL, rel=1e-6)


@given(noise=NOISES, target=st.floats(0.001, 0.2), factor=st.integers(1, 28))
@settings(max_examples=60, deadline=None)
def test_what_is_advised_suffices_and_less_does_not(noise, target, factor):
    found = deciding(noise, target, factor)
    assert found.detectable == pytest.approx(noise.quantile(LEVEL / factor))
    if found.seeds is not None:
        assert noise.with_more(found.seeds / noise.seeds).quantile(LEVEL / factor) <= target
        fewer = found.seeds - 1
        assert fewer == noise.seeds or noise.with_more(fewer / noise.seeds).quantile(LEVEL / factor) > target
    for times, more in ((found.rows, lambda t: noise.with_more(1, t)), (found.both, lambda t: noise.with_more(t, t))):
        if times is not None and times > 1.02:
            assert more(times).quantile(LEVEL / factor) <= target < more(times / 1.02).quantile(LEVEL / factor)
    if found.detectable <= target:
        assert found.seeds == noise.seeds + 1


def test_more_of_both_is_what_a_larger_comparison_measures():
    """The noise that is foretold for four times as many seeds and rows, against that of such comparisons."""
    random = np.random.default_rng(2)
    foretold, measured = [], []
    for _ in range(30):
        small, large = (groups(random, {"a": 0.5, "b": 0.5}, rows, seeds, 0.2) for rows, seeds in ((200, 4), (800, 16)))
        noises = [noise_of([(1.0, each["a"]), (-1.0, each["b"])]) for each in (small, large)]
        foretold.append(noises[0].with_more(4, 4).variance)
        measured.append(noises[1].variance)
    assert np.mean(foretold) == pytest.approx(np.mean(measured), rel=0.2)


def test_each_look_costs_its_part():
    made = groups(np.random.default_rng(3), {"a": 0.7, "b": 0.5, "c": 0.5}, 500)
    first, second = (all_pairs(made, asking=Asking(margin=0.05, looks=looks)) for looks in (0, 1))
    for one, other in zip(first, second, strict=True):
        assert other.adjusted_p == pytest.approx(min(1, 3 * one.adjusted_p))
        assert other.equivalence_p == pytest.approx(min(1, 3 * one.equivalence_p))


def test_with_a_baseline_the_others_are_compared_with_it_alone():
    made = groups(np.random.default_rng(4), {"a": 0.7, "b": 0.5, "c": 0.6, "d": 0.4}, 500)
    found = all_pairs(made, asking=Asking(baseline="b"))
    assert {frozenset((each.first, each.second)) for each in found} == {
        frozenset("ab"),
        frozenset("bc"),
        frozenset("bd"),
    }
    every = {frozenset((each.first, each.second)): each for each in all_pairs(made)}
    for each in found:
        assert each.p == every[frozenset((each.first, each.second))].p
        assert each.adjusted_p <= every[frozenset((each.first, each.second))].adjusted_p
    assert all_pairs(made, asking=Asking(baseline="none of them")) == all_pairs(made)


def test_seeds_that_are_good_for_all_alike_are_paired():
    random = np.random.default_rng(5)
    shared = 0.3 * random.normal(size=(9, 1))
    made = {}
    for label in "abcd":
        right = random.normal(size=(9, 800)) < 0.4 + shared + 0.02 * random.normal(size=(9, 1))
        runs = {seed: [(each.mean(), each.astype(float))] for seed, each in enumerate(right)}
        made[label] = Group.of(runs, None, 1.0)
    correlation = in_common(list(made.values()))
    assert correlation > 0.5
    parts = [(1.0, made["a"]), (-1.0, made["b"])]
    assert noise_of(parts, correlation).variance < 0.6 * noise_of(parts).variance
    others = Group({seed + 1: score for seed, score in made["a"].scores.items()}, made["a"].answers)
    assert in_common([others, made["b"]]) == 0  # no seed of the one is that of the other


@pytest.mark.parametrize(
    ("margin", "task", "unit", "expected"),
    [
        (1, "one", "%", 0.01),
        (1, "one", "", None),  # a point is no nat
        ({"one": 2.0}, "one", "", 2.0),
        (None, "one", "%", None),
        ({"one": 2.0}, "one", "× 100", 0.02),
        ({"one": 2.0}, "two", "%", None),
        ({"one": 2.0}, None, "%", None),
        ({"one": 2.0, "two": 4.0}, None, "%", 0.03),
    ],
)
def test_a_margin_is_in_points_or_in_the_unit_of_the_metric(margin, task, unit, expected):
    assert margin_of(margin, task, ["one", "two"], unit) == (None if expected is None else pytest.approx(expected))


def test_no_difference_is_promised_that_there_cannot_be():
    """Rows of two clusters say next to nothing: their t distribution has one degree of freedom."""
    random = np.random.default_rng(0)
    two = np.repeat([0, 1], 50)
    better = {"a": 0, "b": 1}  # each on a cluster of its own
    tables = {
        name: (random.random((3, 100)) < np.where(two == at, 0.8, 0.4)).astype(float) for name, at in better.items()
    }
    made = {
        name: Group.of({seed: [(float(row.mean()), row)] for seed, row in enumerate(rows)}, two, 1.0)
        for name, rows in tables.items()
    }
    (pair,) = all_pairs(made)
    assert pair.verdict == "undecided"
    assert pair.interval == (-1.0, 1.0)
    assert pair.deciding.detectable is None
    measure = ShownMetric(make_results().tasks[0])
    said = what_would_decide(measure, pair, {"SST-2": 100})
    assert said.startswith("with these seeds and rows no difference would have been found, however large")
    assert found_in_half(measure, pair) == "none"
    change = gain_pairs(made, dict.fromkeys(made, made["b"]), False, Asking())[0]
    assert change.interval == (-2.0, 2.0)  # of two differences


@given(noise=NOISES, factor=st.integers(1, 28), widest=st.floats(0.01, 2))
@settings(max_examples=30, deadline=None)
def test_what_is_found_in_half_of_all_cases_is_possible(noise, factor, widest):
    found = deciding(noise, 0.1, factor, widest).detectable
    assert found == (
        pytest.approx(noise.quantile(LEVEL / factor)) if noise.quantile(LEVEL / factor) <= widest else None
    )
