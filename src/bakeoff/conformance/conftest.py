"""Fixtures of the contracts: the recipes, their models, and corpora."""

import pytest

from bakeoff.conformance.built_models import built, length_of
from bakeoff.conformance.corpora import corpus, parallel_corpus, text_folder
from bakeoff.conformance.narrow import ALIKE, narrow

__all__ = ["corpus", "parallel_corpus", "text_folder"]


def pytest_configure(config):
    """Declare the marker `slow`, whatever folder the tests are run from."""
    config.addinivalue_line("markers", "slow: takes minutes; -m 'not slow' leaves it out")


@pytest.fixture(params=ALIKE)
def name(request):
    return request.param


@pytest.fixture
def recipe(name):
    return narrow(name)


@pytest.fixture
def module(name):
    yield built(name).eval()
    built(name).zero_grad()


@pytest.fixture
def length(module):
    return length_of(module)
