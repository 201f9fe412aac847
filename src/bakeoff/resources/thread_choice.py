"""The threads of a training that runs by itself: a quick look, before it begins, at how many suit it."""

import time
from collections.abc import Callable
from statistics import median
from typing import Literal

import torch

from bakeoff.errors import UserError
from bakeoff.resources.threads import using_threads
from bakeoff.workers.machine import usable_cores

Asked = int | Literal["auto"] | None
"""How many threads; auto: what a look finds; None: as many as torch has."""

SECONDS = 1.0
"""A look ends behind so much time, if every number had its turns."""

SHARE = 0.02
"""It takes no more than this of the training, or is not made."""

TURNS = 2
"""Steps of each number at least, behind one that is not counted: threads start in it."""

GAIN = 1.1
"""So much faster several threads have to be than one, which other programs disturb less."""

RATE = 1e11
"""Operations in a second, to judge beforehand whether a look can be short enough."""


def candidates() -> list[int]:
    """One thread, as many as torch has and cores can be used, and half of them where they are four or more."""
    most = min(torch.get_num_threads(), usable_cores())
    return sorted({1, most} | ({most // 2} if most >= 4 else set()))


def resolve_threads(asked: Asked, recorded: int | None, look: Callable[[], int]) -> int | None:
    """The threads of a training.

    Args:
        asked: what was asked for.
        recorded: those that it was begun with, where it goes on; auto keeps them.
        look: finds out, where nothing else decides.

    Raises:
        UserError: a number below 1.
    """
    if asked != "auto":
        if asked is not None and asked < 1:
            raise UserError(f"--threads {asked}: give at least 1, or auto")
        return asked
    return recorded or look()


def quickest(
    begin: Callable[[], Callable[[int], object]], operations: float, whole: Callable[[float], float], default: int
) -> int:
    """The number of threads with which steps are quickest, in turns, on what else the machine does just now.

    Args:
        begin: makes a copy of the training, whose steps are called with their number; the training is not touched.
        operations: of a step.
        whole: seconds of the training, from those of a step.
        default: where a look would take more than its share.
    """
    numbers = candidates()
    if len(numbers) == 1:
        return numbers[0]
    steps = 2 + (1 + TURNS) * len(numbers)
    if steps * operations / RATE > SHARE * whole(operations / RATE):
        return min(default, numbers[-1])
    began = time.perf_counter()
    with using_threads(1), torch.random.fork_rng(devices=[]):
        step = begin()
        step(0)  # slower than others
        alone = _seconds(step, 1)
        if time.perf_counter() - began + steps * alone > SHARE * whole(alone):
            return min(default, numbers[-1])
        times: dict[int, list[float]] = {number: [] for number in numbers}
        index = 2
        while len(times[1]) <= TURNS or time.perf_counter() - began < min(SECONDS, SHARE * whole(alone)):
            for number in numbers:
                torch.set_num_threads(number)
                times[number].append(_seconds(step, index))
                index += 1
    medians = {number: median(own[1:]) for number, own in times.items()}
    best = min(medians, key=lambda number: medians[number])
    return best if medians[best] * GAIN < medians[1] else 1


def _seconds(step: Callable[[int], object], index: int) -> float:
    began = time.perf_counter()
    step(index)
    return time.perf_counter() - began
