"""Fixtures of the comparison's tests."""

import pytest
from synthetic_results import make_results


@pytest.fixture
def results():
    return make_results()
