"""Fixtures of the comparison's tests."""

import pytest
from synthetic_results import make_results

from bakeoff.comparison.running import latency


@pytest.fixture
def results():
    return make_results()


@pytest.fixture(autouse=True)
def _quick_latencies(monkeypatch):
    """As few calls as there may be, since no test asks how long they take."""
    monkeypatch.setattr(latency, "SECONDS", 0.0)
