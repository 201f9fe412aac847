"""The values of trials, and who goes on."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.tuning.candidates import candidates, recipes_of
from bakeoff.tuning.halving import chosen, evaluations, going_on, most_work
from bakeoff.tuning.ranges import RATE, parse_ranges

RECIPE = shrink("bert-tiny")


def values(over, trials):
    return candidates(parse_ranges(over, RECIPE, trials), trials)


@pytest.mark.parametrize("trials", [1, 2, 3, 5, 8, 16])
def test_learning_rates_are_an_even_grid_from_the_own_one_outwards(trials):
    rates = [each[RATE] for each in values([], trials)]
    assert len(rates) == trials
    assert rates[0] == 1e-3
    distances = [abs(math.log(rate / 1e-3)) for rate in rates]
    assert all(before <= after + 0.02 for before, after in pairwise(distances))
    gaps = [math.log(after / before) for before, after in pairwise(sorted(rates))]
    assert max(gaps, default=0) <= min(gaps, default=0) + 0.03


def test_a_given_range_is_tried_at_both_ends_and_at_the_own_value():
    rates = sorted(each[RATE] for each in values([f"{RATE}=1e-4..1e-1"], 7))
    assert (rates[0], rates[-1]) == (1e-4, 1e-1)
    assert 1e-3 in rates
    assert len(rates) == 7
    assert values([f"{RATE}=1e-2..1e-1"], 3)[0][RATE] == pytest.approx(10**-1.5, rel=0.01)


def test_lists_are_tried_in_all_combinations_where_the_trials_suffice():
    over = {RATE: [1e-4, 1e-3], "model.dropout": [0.0, 0.1, 0.2]}
    found = values(over, 6)
    assert found[0][RATE] == 1e-3  # the recipe's own
    assert {(each[RATE], each["model.dropout"]) for each in found} == {
        (a, b) for a in over[RATE] for b in [0.0, 0.1, 0.2]
    }
    assert len(values(over, 100)) == 6
    assert len(values(over, 4)) == 4


def test_several_ranges_are_filled_more_evenly_than_by_chance():
    """Each half and each third of each range has its share of the points, and so have pairs of halves."""
    found = values(["model.dropout=0.0..0.6", "training.clip=1.0..100.0"], 60)
    assert len(found) == 60
    assert len({tuple(each.values()) for each in found}) == 60
    rates, dropouts, clips = ([list(each.values())[axis] for each in found] for axis in range(3))
    for parts in (2, 3):
        for axis, place in (
            (rates, lambda rate: math.log(rate / min(rates)) / math.log(max(rates) / min(rates))),
            (dropouts, lambda dropout: dropout / 0.6),
            (clips, lambda clip: math.log10(clip) / 2),
        ):
            counts = [0] * parts
            for value in axis:
                counts[min(int(place(value) * parts), parts - 1)] += 1
            assert max(counts) - min(counts) <= 6
    quarters = [0] * 4
    for dropout, clip in zip(dropouts, clips, strict=True):
        quarters[2 * (dropout > 0.3) + (clip > 10)] += 1
    assert max(quarters) - min(quarters) <= 6


def test_the_trials_are_the_same_in_every_process():
    assert values(["model.dropout=0.0..0.6"], 9) == values(["model.dropout=0.0..0.6"], 9)


def test_whole_numbers_come_once_each():
    found = [each["training.batch"] for each in values([f"{RATE}=1e-3", "training.batch=2..9"], 20)]
    assert sorted(found) == list(range(2, 10))


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ("model.dropout=0..1", "--over model.dropout=0..1: 1.0: bert-tiny: model.dropout: input should be less than 1"),
        ("model.dropout=-1..0.5", "--over model.dropout=-1..0.5: -1.0: .*greater than or equal to 0"),
        ("model.encoder.block.ffn.activation=gelu,gleu", "gleu"),
    ],
)
def test_both_ends_and_every_value_are_checked(over, said):
    ranges = parse_ranges([over], RECIPE, 4)
    with pytest.raises(UserError, match=said):
        recipes_of(RECIPE, ranges, candidates(ranges, 4))


def test_another_kind_loses_the_old_ones_keys():
    ranges = parse_ranges(["training.optimizer.kind=adamw,sgd"], RECIPE, 4)
    recipes = recipes_of(RECIPE, ranges, candidates(ranges, 4))
    assert {recipe.training.optimizer.kind for recipe in recipes} == {"adamw", "sgd"}


def test_looks_are_at_a_quarter_and_a_half_where_the_loss_is_measured():
    assert evaluations(20, [1000]) == [[250, 500, 1000]]
    assert evaluations(20, [80]) == [[27, 53, 80]]
    assert evaluations(20, [60]) == [[30, 60]]
    assert evaluations(20, [40]) == [[40]]
    assert evaluations(20, [1000, 400]) == [[250, 500, 1000], [100, 200, 400]]
    assert evaluations(20, [1000, 40]) == [[1000], [40]]  # what cannot be compared is not stopped
    assert evaluations(1, [1000]) == [[1000]]


def test_half_of_the_trials_goes_on_and_then_three_quarters():
    assert [going_on(16, evaluation) for evaluation in range(2)] == [8, 6]
    assert [going_on(5, evaluation) for evaluation in range(2)] == [3, 3]
    assert [going_on(2, evaluation) for evaluation in range(2)] == [2, 2]
    assert going_on(1, 1) == 1
    assert most_work([[250, 500, 1000]] * 16) == 4 + 2 + 3
    assert most_work([[1000]] * 3) == 3


@given(st.lists(st.none() | st.floats(0, 10, allow_subnormal=False), max_size=12), st.integers(1, 12))
def test_the_lowest_losses_are_chosen(losses, most):
    found = chosen(losses, most)
    finite = [loss for loss in losses if loss is not None]
    assert found == sorted(found)
    assert len(found) == min(most, len(finite))
    assert sorted(losses[place] for place in found) == sorted(finite)[:most]
