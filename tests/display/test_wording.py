"""Numbers as reports show them."""

import numpy as np
import pytest

from bakeoff.display.wording import MINUS, percent, points


@pytest.mark.parametrize("value", [0.0, -0.0, -0.0004, np.float64(-0.0)])
def test_nothing_is_shown_as_less_than_zero_that_rounds_to_it(value):
    assert (points(value), percent(value)) == ("+0.0", "0.0")
    assert (points(value - 0.001), percent(value - 0.001)) == (f"{MINUS}0.1", f"{MINUS}0.1")
