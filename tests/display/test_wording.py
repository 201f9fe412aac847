"""Numbers as reports show them."""

import numpy as np
import pytest

from bakeoff.display.wording import MINUS, budget, percent, points


@pytest.mark.parametrize("value", [0.0, -0.0, -0.0004, np.float64(-0.0)])
def test_nothing_is_shown_as_less_than_zero_that_rounds_to_it(value):
    assert (points(value), percent(value)) == ("+0.0", "0.0")
    assert (points(value - 0.001), percent(value - 0.001)) == (f"{MINUS}0.1", f"{MINUS}0.1")


def test_a_budget_is_as_people_write_it():
    given = ("minutes=10", "steps=1", "flops=18000000000.0", "flops=3e10", "flops=1.5e+15")
    expected = ["10 minutes", "1 step", "1.8e10 FLOPs", "3e10 FLOPs", "1.5e15 FLOPs"]
    assert list(map(budget, given)) == expected
