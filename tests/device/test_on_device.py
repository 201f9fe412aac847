"""A device gives what the CPU gives: `pytest tests/device --device cuda`; without the option, that the checks run."""

import time

import pytest
from tests.device.checks import CHECKS, Corpora

from bakeoff.resources.device import resolve_device

pytestmark = pytest.mark.device


def pytest_generate_tests(metafunc):
    on_cpu = metafunc.config.getoption("--device") == "cpu"
    cases = [(check.function, name) for check in CHECKS for name in (check.on_cpu if on_cpu else check.names)]
    ids = [f"{function.__name__}-{name}" for function, name in cases]
    metafunc.parametrize(("check", "name"), cases, ids=ids)


@pytest.fixture(scope="session")
def device(request):
    return resolve_device(request.config.getoption("--device"))


@pytest.fixture(scope="session")
def corpora(tmp_path_factory):
    return Corpora(tmp_path_factory.mktemp("device"))


BEGAN = time.monotonic()


def test_it_gives_what_the_cpu_gives(check, name, device, corpora, request):
    if time.monotonic() - BEGAN > request.config.getoption("--most-seconds"):
        pytest.skip("no time was left")
    check(name, device, corpora)
