"""The time that is left for a queue of jobs, against a simulation of the queue itself."""

import heapq
import random

import pytest

from bakeoff.jobs.remaining import Load, Remaining


def simulate(durations, slots, share):
    """Do jobs of known durations, in their order; after a share of the whole time, what is said and what is true."""
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    waiting, running, said = list(range(len(durations))), [], []
    while waiting or running:
        while waiting and len(running) < slots:
            number = waiting.pop(0)
            heapq.heappush(running, (now[0] + durations[number][1], number, now[0]))
            remaining.begin(number, durations[number][0])
        for end, number, began in running:
            remaining.hear(number, round(100 * (now[0] - began) / (end - began)), 100)
        said.append((now[0], remaining.seconds([durations[each][0] for each in waiting], slots)))
        end, number, _ = running[0]
        if now[0] + 0.5 < end:
            now[0] += 0.5
            continue
        now[0] = end
        heapq.heappop(running)
        remaining.end(number)
    return [(now[0] - at, estimate) for at, estimate in said if at >= share * now[0]]


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_once_every_kind_has_run_the_time_left_is_that_of_the_queue(slots):
    kinds = {("pre-training", "a"): 40.0, ("pre-training", "b"): 90.0, ("fine-tuning", "a"): 10.0}
    jobs = [(Load(*kind), seconds) for _ in range(6) for kind, seconds in kinds.items()]
    checked = simulate(jobs, slots, 0.5)
    assert len(checked) > 50
    for true, (estimate, all_known) in checked:
        assert all_known
        assert estimate == pytest.approx(true, rel=0.35, abs=40)


def test_sizes_count_and_what_is_unknown_is_said_to_be():
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    assert remaining.seconds([Load("part", "x")], 1) is None
    remaining.begin(1, Load("part", "x", 100))
    now[0] = 50.0
    remaining.end(1)
    assert remaining.seconds([Load("part", "x", 10), Load("part", "y", 30)], 1) == (20.0, True)
    assert remaining.seconds([Load("part", "x", 10), Load("part", "x", 30)], 2) == (15.0, True)
    assert remaining.seconds([Load("part", "x", 10), Load("other", "x")], 1) == (5.0, False)


def test_a_job_that_goes_on_is_not_taken_for_a_quick_one():
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    remaining.begin(1, Load("part", "x"))
    now[0] = 10.0
    remaining.hear(1, 80, 100)
    now[0] = 20.0
    remaining.hear(1, 90, 100)
    assert remaining.seconds([], 1) == (pytest.approx(10), True)
    now[0] = 30.0
    remaining.end(1)
    assert remaining.seconds([Load("part", "x")], 1) == (pytest.approx(100), True)


def test_what_is_to_begin_again_says_nothing_of_others():
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    remaining.begin(1, Load("part", "x"))
    now[0] = 3.0
    remaining.end(1, over=False)
    assert remaining.seconds([Load("part", "x")], 1) is None


@pytest.mark.parametrize("seed", range(3))
def test_an_estimate_is_never_less_than_what_the_longest_job_needs(seed):
    chance = random.Random(seed)
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    for number in range(5):
        remaining.begin(number, Load("part", str(number)))
        now[0] += chance.uniform(1, 100)
        remaining.end(number)
    ahead = [Load("part", str(chance.randrange(5)), chance.uniform(0, 9)) for _ in range(20)]
    alone = [remaining.seconds([load], 1)[0] for load in ahead]
    for slots in (1, 3, 50):
        estimate, _ = remaining.seconds(ahead, slots)
        assert estimate >= max(alone)
        assert estimate == pytest.approx(max(sum(alone) / min(slots, 20), max(alone)))
