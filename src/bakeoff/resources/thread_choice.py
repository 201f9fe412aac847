"""The choice of threads for a training that runs alone, by a short measurement before it begins."""

import time
from collections.abc import Callable
from statistics import median
from typing import Literal

import torch

from bakeoff.errors import UserError
from bakeoff.machine.capacity import usable_cores
from bakeoff.resources.threads import using_threads

Asked = int | Literal["auto"] | None
"""Number of threads; auto: the measured best; None: torch's number."""

SECONDS = 1.0
"""Seconds after which a measurement ends, once every number has had its turns."""

SHARE = 0.02
"""Largest share of the training's time for the measurement, which is otherwise not made."""

TURNS = 2
"""Least number of timed steps for each number of threads, after one untimed step in which threads start."""

GAIN = 1.1
"""Least speedup over one thread that several threads need, since other programs disturb one thread less."""

RATE = 1e11
"""Assumed operations a second, to judge beforehand whether a measurement would be short enough."""


def candidates() -> list[int]:
    """The numbers to measure: 1, the largest (torch's threads, at most the usable cores), and half of it from 4 on."""
    most = min(torch.get_num_threads(), usable_cores())
    return sorted({1, most} | ({most // 2} if most >= 4 else set()))


def resolve_threads(asked: Asked, recorded: int | None, look: Callable[[], int]) -> int | None:
    """The number of threads of a training.

    Args:
        asked: the user's choice.
        recorded: for a resumed training the number that it began with, which auto keeps; else None.
        look: a function that measures, for auto without a recorded number.

    Raises:
        UserError: the number is below 1, or none.
    """
    if asked != "auto":
        if asked is not None and (not isinstance(asked, int) or asked < 1):
            raise UserError(f"--threads {asked}: give a whole number from 1 on, or auto")
        return asked
    return recorded or look()


def quickest(
    begin: Callable[[], Callable[[int], object]], operations: float, whole: Callable[[float], float], default: int
) -> int:
    """The number of threads with the fastest steps, measured in turns under the machine's present load.

    Args:
        begin: a function that copies the training and returns a function that does the step with a number.
        operations: floating-point operations of a step.
        whole: a function from the seconds of a step to those of the training.
        default: the result if a measurement would exceed its SHARE.
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
        step(0)  # a first step is slower
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
    medians = {number: median(seconds[1:]) for number, seconds in times.items()}
    best = min(medians, key=lambda number: medians[number])
    return best if medians[best] * GAIN < medians[1] else 1


def _seconds(step: Callable[[int], object], index: int) -> float:
    began = time.perf_counter()
    step(index)
    return time.perf_counter() - began
