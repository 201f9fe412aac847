"""What jobs will cost: sums of what each costs, and what does not suffice."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.jobs.choice import Asked
from bakeoff.jobs.forecast import Forecast, Size, Work
from bakeoff.machine.limits import Limits
from bakeoff.resources.memory_need import memory_need
from bakeoff.resources.threads import SharedMachine

GIB = 1 << 30


def limits(**changes):
    ample = {"path": "/", "disk": 100 * GIB, "free_disk": 90 * GIB, "free_inodes": None, "open_files": None}
    return Limits(**{**ample, "file_size": None, **changes})


def work(what="pre-training", of="a", jobs=1, seconds=10.0, **changes):
    sizes = {"kept": 1, "running": 10, "memory": 100}
    return Work(what=what, of=of, jobs=jobs, seconds=seconds, **{**sizes, **changes})


def made(works, at_once=1, **changes):
    shared = SharedMachine(1, ["cpu"] * at_once)
    return Forecast.of(works, Asked(), shared, "cpu", ["a 1 ms a step"], limits(**changes))


@pytest.mark.parametrize(
    ("works", "at_once", "seconds"),
    [
        ([work(jobs=6, seconds=10)], 1, 60),
        ([work(jobs=6, seconds=10)], 2, 30),
        ([work(jobs=6, seconds=10), work("fine-tuning", jobs=4, seconds=5)], 2, 40),
        ([work(jobs=1, seconds=50), work("fine-tuning", jobs=4, seconds=5)], 4, 50),  # nobody shares the longest
        ([work(jobs=0, seconds=50, done=3)], 1, 0),
    ],
)
def test_hours_are_those_of_all_jobs_divided_but_at_least_of_the_longest(works, at_once, seconds):
    assert made(works, at_once).seconds == seconds


def test_disk_and_memory_are_those_of_the_largest_that_run_together():
    works = [work(of="a", jobs=5, kept=1, running=10, memory=100), work(of="b", jobs=1, kept=7, running=30, memory=90)]
    forecast = made(works, 3)
    assert (forecast.kept, forecast.most_on_disk, forecast.memory) == (5 + 7, 12 + 30 + 10 + 10, 300)


def test_a_training_has_two_checkpoints_and_the_one_that_is_written():
    assert Size(weights=3, checkpoint=7, memory=1).running == 3 * 7


def test_what_does_not_suffice_is_said():
    assert made([work()]).problems == []
    assert made([work(kept=50 * GIB, running=50 * GIB)]).problems == [
        "the disk has 90.0 GiB left, and the jobs need 100.0 GiB"
    ]
    (problem,) = made([work(jobs=2, memory=1 << 60)], 2).problems
    assert problem.endswith("and 2 jobs at once need 2147483648.0 GiB; fewer --jobs need less")
    for low in ({"free_disk": GIB // 2}, {"free_inodes": 50}, {"open_files": 64}, {"file_size": 1000}):
        (problem,) = made([work()], **low).problems
        assert problem in limits(**low).problems


def test_rows_say_what_is_done_and_what_is_left():
    rows = made([work(jobs=4, seconds=1800, done=2), work("fine-tuning", jobs=1, seconds=60)], 2).rows()
    assert rows["jobs"] == "4 pre-trainings and 1 fine-tuning; 2 more are done"
    assert rows["time"].startswith("about 60.5 min, 2 at once, with 1 thread each: 2.0 h of pre-trainings and 60 s of")
    assert made([work(jobs=0, done=7)]).rows() == {"jobs": "none; 7 are done"}


@pytest.mark.parametrize("name", ["gpt-tiny", "electra-tiny", "albert-tiny", "laptop-hybrid-tiny"])
def test_sizes_are_those_that_are_counted_for_a_training(name):
    recipe, device = shrink(name), torch.device("cpu")
    size, need = Size.of(recipe, 500, "cpu"), memory_need(recipe, 500, device)
    assert size.weights == need.weights
    assert size.checkpoint == need.weights + need.optimizer
    assert size.memory > need.total
