"""Fixtures of the search's tests."""

import math

import pytest

from bakeoff.errors import Interrupted
from bakeoff.jobs.job import Outcome
from bakeoff.optimization.budget import Budget


class Planted:
    """An engine whose trials have a known best learning rate, dropout and batch; it trains nothing.

    Args:
        best: the best learning rate.
        diverges_from: learning rates that diverge at the second evaluation, and ten times them at the first.
        stops_before: the number of the call of `carry_out` that is interrupted.
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

    def carry_out(self, job, progress, note):
        if len(self.calls) == self.stops_before:
            self.stops_before = None
            raise Interrupted("the run can be resumed", 2)
        rate = job.recipe["training"]["optimizer"]["lr"]
        self.calls.append((job.out.name, job.until))
        share = job.until / Budget.parse_text(job.budget).steps
        if rate >= self.diverges_from * (1 if share > 0.25 else 10):
            return Outcome(loss=None, seconds=1.0, diverged="not a finite number")
        dropout = job.recipe["model"]["dropout"]
        loss = 2 + math.log(rate / self.best) ** 2 / 10 + (dropout - 0.1) ** 2 - share
        return Outcome(loss=loss, seconds=10.0 * share, tokens=100 * job.until)

    def environment(self, device):
        return {"device_name": "a machine"}


@pytest.fixture
def planted():
    return Planted
