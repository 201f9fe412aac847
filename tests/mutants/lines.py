"""A pytest plugin that writes down which tests run which lines, how long each takes, and what they import."""

import json
import os
import sys
from collections.abc import Generator

import coverage
import pytest

FOLDER = os.environ["MUTANTS_BASELINE"]
_coverage = coverage.Coverage(data_file=f"{FOLDER}/lines", source=["src"], config_file=False)
_coverage.start()  # before anything of the package is imported
_seconds: dict[str, float] = {}
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What runs from here on is run by this test."""
    _coverage.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Set-up, call and tear-down together; a skipped test notices nothing, nor one that always fails."""
    if report.failed:
        _failed.add(report.nodeid)
    if not report.skipped:
        _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Write all of it."""
    _coverage.stop()
    _coverage.save()
    seconds = {name: value for name, value in _seconds.items() if name not in _failed}
    with open(f"{FOLDER}/tests.json", "w", encoding="utf-8") as file:
        json.dump({"seconds": seconds, "modules": sorted(sys.modules)}, file)
