"""How trainings share a machine."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.recipe_files import load_recipe
from bakeoff.resources import threads
from bakeoff.resources.threads import SharedMachine, side_by_side, using_threads

SMALL = shrink("bert-tiny")
LARGE = load_recipe("bert-base")


@pytest.fixture
def machine(monkeypatch):
    def with_(cores, memory):
        monkeypatch.setattr(threads, "usable_cores", lambda: cores)
        monkeypatch.setattr(threads, "free_memory", lambda: memory)

    return with_


def test_small_models_have_a_thread_each_and_a_large_one_has_all(machine):
    machine(8, 64 << 30)
    assert side_by_side([SMALL], 100, "cpu") == SharedMachine(1, ["cpu"] * 8)
    assert side_by_side([SMALL, LARGE], 100, "cpu") == SharedMachine(8, ["cpu"] * 1)
    assert side_by_side([SMALL], 100, "cpu", jobs=3) == SharedMachine(1, ["cpu"] * 3)
    assert side_by_side([LARGE], 100, "cpu", jobs=3) == SharedMachine(8, ["cpu"] * 3)


@pytest.mark.slow
def test_settled_threads_stay_whatever_is_free(machine):
    for cores, memory in ((8, 64 << 30), (2, 64 << 30), (8, 1)):
        machine(cores, memory)
        assert side_by_side([LARGE], 100, "cpu", threads=2).threads == 2
    machine(8, 640 << 30)
    assert side_by_side([LARGE], 100, "cpu", threads=2) == SharedMachine(2, ["cpu"] * 4)


def test_memory_bounds_how_many_and_shares_the_cores_among_them(machine):
    machine(8, 1 << 30)
    assert side_by_side([SMALL], 100, "cpu") == SharedMachine(4, ["cpu"] * 2)
    machine(8, 0)
    assert side_by_side([SMALL], 100, "cpu") == SharedMachine(8, ["cpu"] * 1)
    machine(8, None)
    assert side_by_side([SMALL], 100, "cpu") == SharedMachine(1, ["cpu"] * 8)


def test_of_several_gpus_each_gets_a_training_unless_one_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 12)
    for count, device, jobs, expected in (
        (4, "auto", None, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]),
        (4, "cuda", 2, ["cuda:0", "cuda:1"]),
        (2, "auto", 5, ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cuda:0"]),
        (4, "cuda:2", 3, ["cuda:2"] * 3),
        (1, "auto", 2, ["auto"] * 2),
    ):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        shared = side_by_side([LARGE], 100, device, jobs=jobs)
        assert shared == SharedMachine(12 // len(expected), expected)
    for device in ("cuda", "cuda:0"):
        assert side_by_side([LARGE], 100, device) is None
    assert side_by_side([LARGE], 100, "cpu", jobs=2).devices == ["cpu"] * 2


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    with using_threads(None):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before
