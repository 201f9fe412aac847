"""Ranges as they are written, and the values that they give."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.tuning.ranges import RATE, parse_ranges

RECIPE = shrink("bert-tiny")
LENGTH = "input.length"
NUMBERS = st.floats(1e-9, 1e9, allow_subnormal=False)


def only(text, trials=16):
    """The range of a text beside the learning rate's, or that one."""
    *_, found = parse_ranges([text], RECIPE, trials)
    return found


def test_the_learning_rate_comes_first_and_its_own_value_is_in_the_middle():
    first, second = parse_ranges(["model.dropout=0.0..0.3"], RECIPE, 15)
    assert (first.key, second.key) == (RATE, "model.dropout")
    assert (first.low, first.high, first.own, first.logarithmic) == (1e-3 / 8, 8e-3, 1e-3, True)
    given_rate = parse_ranges({"model.dropout": [0, 0.1], RATE: "1e-4..1e-3"}, RECIPE, 15)
    assert [(each.key, each.low) for each in given_rate] == [(RATE, 1e-4), ("model.dropout", None)]


@pytest.mark.parametrize("trials", [1, 2, 3, 4, 7, 16, 40])
def test_the_own_learning_rate_is_a_step_of_an_even_grid(trials):
    (rate,) = parse_ranges([], RECIPE, trials)
    steps = math.log(rate.high / rate.low) / max(1, trials - 1)
    assert math.log(rate.own / rate.low) / steps == pytest.approx(
        round(math.log(rate.own / rate.low) / steps), abs=0.02
    )
    assert rate.high == pytest.approx(8 * rate.own)


def test_a_rate_of_many_digits_is_among_them():
    recipe = RECIPE.changed({RATE: 0.0012367})
    for trials in (1, 2, 3):
        (rate,) = parse_ranges([], recipe, trials)
        assert rate.has_own
        assert rate.middle == 0.0012367


@given(NUMBERS, NUMBERS, st.floats(0, 1, allow_subnormal=False))
def test_a_range_of_numbers_gives_numbers_of_the_range(first, second, place):
    low, high = sorted((first, second))
    found = only(f"training.clip={low!r}..{high!r}")
    assert (found.low, found.high, found.logarithmic) == (low, high, high / low >= 10)
    assert low <= found.at(place) <= high
    assert (found.at(0), found.at(1)) == (low, high)
    middle = math.sqrt(low) * math.sqrt(high) if found.logarithmic else low / 2 + high / 2
    assert found.at(0.5) == pytest.approx(min(max(middle, low), high), rel=0.006)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1, allow_subnormal=False))
def test_whole_numbers_stay_whole(first, second, place):
    low, high = sorted((first, second))
    found = only(f"{LENGTH}={low}..{high}")
    assert found.whole
    assert isinstance(found.at(place), int)
    assert low <= found.at(place) <= high
    assert found.size == high - low + 1
    assert found.checked == [low, high]


@given(
    st.lists(
        st.integers() | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False), min_size=1, unique=True
    )
)
def test_a_list_gives_each_of_its_values(values):
    text = ",".join(map(repr, values))
    found = only(f"training.clip={text}")
    assert found.choices == values
    places = [(number + 0.5) / len(values) for number in range(len(values))]
    assert [found.at(place) for place in places] == values
    assert found == only(f"training.clip={text}")


def test_lists_hold_whatever_a_recipe_does():
    assert only("model.encoder.block.ffn.activation=relu,gelu").choices == ["relu", "gelu"]
    assert only("training.clip=null, 1.0").choices == [None, 1.0]
    assert only("training.optimizer.betas=[0.9, 0.95],[0.9, 0.999]").choices == [[0.9, 0.95], [0.9, 0.999]]
    (_, clip) = parse_ranges({"training.clip": [None, 1.0]}, RECIPE, 4)
    assert (clip.choices, clip.text) == ([None, 1.0], "null,1.0")


def test_zero_has_no_logarithm():
    assert not only("model.dropout=0..0.5").logarithmic
    assert only("training.optimizer.weight_decay=0.0001..0.1").logarithmic


@given(st.text())
def test_any_text_is_a_range_or_refused(text):
    with suppress(UserError):
        found = only(f"training.clip={text}")
        assert found.size >= 1
        assert found.middle in (found.own, found.at(0.5))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training.optimizer.lr", "expected KEY=RANGE, such as"),
        ("training.optimizer.lrr=1..2", "has no such key; did you mean 'training.optimizer.lr'?"),
        ("training.clip=3..1", "expected the lowest and the highest number"),
        ("training.clip=a..b", "expected the lowest and the highest number"),
        ("training.clip=", "expected KEY=RANGE"),
        ("training.clip=1,1", "a value is given twice"),
        ("training.clip=[", "--over training.clip=\\["),
        (f"{LENGTH}=8..32.5", "whole number 32 there; give whole numbers"),
        ("model.encoder.block.ffn.activation=1..2", "which is no number; list values"),
        ("model.bias=0..1", "the recipe has true there, which is no number"),
        ("training.budget.steps=10..20", "all trials are run and measured alike; give it with --set"),
        ("training.optimizer=1,2", "sets training.optimizer.lr, which is searched, too"),
    ],
)
def test_what_is_no_range_is_refused(text, said):
    with pytest.raises(UserError, match=said):
        parse_ranges([text], RECIPE, 4)


def test_a_key_may_be_given_once():
    with pytest.raises(UserError, match="given twice"):
        parse_ranges(["training.clip=1,2", "training.clip=3,4"], RECIPE, 4)
