"""Fixtures of the search's tests."""

import math

import pytest

from bakeoff.errors import Interrupted
from bakeoff.tuning.engine import TrialOutcome


class Planted:
    """An engine whose trials have a known best learning rate, dropout and batch; it trains nothing.

    Args:
        best: the best learning rate.
        diverges_from: learning rates that diverge at the second look, and ten times them at the first.
        stops_before: the number of the call of `train` that is interrupted.
    """

    def __init__(self, best=3e-3, diverges_from=math.inf, stops_before=None):
        self.best, self.diverges_from, self.stops_before = best, diverges_from, stops_before
        self.calls = []

    def fingerprint(self, corpus):
        return "abc"

    def check(self, recipe, measured_as, corpus, device):
        pass

    def steps(self, recipe, budget, corpus, device):
        return budget.steps or round(budget.tokens / recipe.training.batch)

    def train(self, stage, progress=False):
        if len(self.calls) == self.stops_before:
            self.stops_before = None
            raise Interrupted("the run can be resumed", 2)
        rate = stage.recipe["training"]["optimizer"]["lr"]
        self.calls.append((stage.out.rpartition("/")[2], stage.until))
        share = stage.until / stage.steps
        if rate >= self.diverges_from * (1 if share > 0.25 else 10):
            return TrialOutcome(loss=None, seconds=1.0, diverged="not a finite number")
        dropout = stage.recipe["model"]["dropout"]
        loss = 2 + math.log(rate / self.best) ** 2 / 10 + (dropout - 0.1) ** 2 - share
        return TrialOutcome(loss=loss, seconds=10.0 * share, tokens=100 * stage.until)

    def environment(self, device):
        return {"device_name": "a machine"}


@pytest.fixture
def planted():
    return Planted
