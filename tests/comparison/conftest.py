"""Fixtures of the comparison's tests."""

import pytest
from synthetic_results import make_results

from bakeoff.comparison.reporting import report
from bakeoff.comparison.running import latency

RARE = ("budget", "factors", "layers", "rows", "search")
"""Beginnings of the names of charts that few reports have."""


@pytest.fixture
def results():
    return make_results()


@pytest.fixture(autouse=True, scope="module")
def _quick_latencies():
    """As few calls as there may be, since no test asks how long they take; for comparisons that a file shares, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "SECONDS", 0.0)
        yield


@pytest.fixture
def every_chart():
    """For tests that look for the files of charts that every report has."""


@pytest.fixture(autouse=True)
def _few_charts(request, monkeypatch):
    """Files of rare charts alone: those of every report take seconds to draw, and `test_report.py` reads them."""
    draw = report._write_figures
    if "every_chart" not in request.fixturenames:
        monkeypatch.setattr(
            report,
            "_write_figures",
            lambda results, figures, folder: draw(
                results, [figure for figure in figures if figure.name.startswith(RARE)], folder
            ),
        )
