"""The time of an optimizer step, measured on a copy of the training so that the training itself is not touched."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import torch

from bakeoff.corpus.mixture import AnyCorpus, Mixture, open_corpus
from bakeoff.corpus.store import Corpus
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.distributed.shards import shard
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.stack import parts_in
from bakeoff.optimization.curriculum import middles, shares
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device, resolve_precision, work_clock
from bakeoff.trainer.step import NORM, optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches
from bakeoff.training.teachers import Teachers

MEASURE_SECONDS = 5.0
"""Seconds of measurement of each recipe, after its first step, which is slower."""

FORECAST_SECONDS = 1.0
"""Seconds of measurement of each recipe for a forecast, which steps do not depend on."""

Measured = TypeVar("Measured")

LEAST_DISTURBED = 10
"""One step in this many is less disturbed than the step that gives the ratio of clock time to work time."""

FEWEST_STEPS = 3
"""The fewest steps that are measured."""


class StepTime(NamedTuple):
    """The time of one optimizer step."""

    seconds: float
    """Seconds on the clock, if the machine does nothing else."""
    work_seconds: float
    """Seconds by `work_clock`."""


def step_times(
    recipes: Sequence[Recipe],
    corpus: AnyCorpus | Path,
    device: str = "auto",
    seconds: float = MEASURE_SECONDS,
    processes: Processes = ALONE,
) -> list[StepTime]:
    """The time of an optimizer step of each recipe, without compilation; the recipes take turns.

    Several processes take the steps together, by the clock of the first.

    The work of a step is the median of the measured steps. The time on the clock is this work times the ratio of clock
    time to work time in the least disturbed steps; the ratio is below 1 with several threads, and other programs on the
    machine hardly change it. With a curriculum, both are means over the training: each stage is measured at its middle.
    """
    opened = corpus if isinstance(corpus, Corpus | Mixture) else open_corpus(corpus)
    on = resolve_device(device)
    stages = [_middles(recipe) for recipe in recipes]
    steps = [stepper(stage, opened, on, processes) for recipe_stages in stages for stage in recipe_stages]
    for step in steps:
        step(0)
    measured = iter([_undisturbed(times) for times in in_turns(steps, seconds, processes)])
    curricula = [shares(recipe.training.curriculum) for recipe in recipes]
    times = [_mean([(share, next(measured)) for share in curriculum]) for curriculum in curricula]
    return processes.once(lambda: times)


def _middles(recipe: Recipe) -> list[Recipe]:
    """The recipe as it is in the middle of each stage, which stands for all steps of that stage."""
    points = middles(recipe.training.curriculum)
    return [stage.at(progress) for stage, progress in zip(recipe.stages(), points, strict=True)]


def _mean(stages: Sequence[tuple[float, StepTime]]) -> StepTime:
    return StepTime(*(sum(share * time[index] for share, time in stages) for index in range(2)))


def _undisturbed(times: Sequence[StepTime]) -> StepTime:
    """The time of a step without other programs on the machine, from the times of single steps; see `step_times`."""
    work = median(time.work_seconds for time in times)
    shares_of_clock = sorted(time.seconds / time.work_seconds for time in times)
    return StepTime(work * shares_of_clock[len(times) // LEAST_DISTURBED], work)


def medians_in_turns(measures: Sequence[Callable[[int], float]], seconds: float) -> list[float]:
    """The median of each measure, called in turns."""
    return [median(times) for times in in_turns(measures, seconds)]


def in_turns(
    measures: Sequence[Callable[[int], Measured]], seconds: float, processes: Processes = ALONE
) -> list[list[Measured]]:
    """The results of each measure, called in turns until `seconds` for each of them have passed.

    In turns, whatever else the machine does hits all measures alike. A measure gets the number of its turn, from 1.
    """
    times: list[list[Measured]] = [[] for _ in measures]
    began, index = time.perf_counter(), 1
    goes_on = True
    while goes_on:
        for measure, results in zip(measures, times, strict=True):
            results.append(measure(index))
        index += 1
        here = index <= FEWEST_STEPS or time.perf_counter() - began < seconds * len(measures)
        goes_on = bool(processes.gathered([here])[0][0])  # by the clock of the first process
    return times


def stepper(
    recipe: Recipe, corpus: AnyCorpus, device: torch.device, processes: Processes = ALONE
) -> Callable[[int], StepTime]:
    """A function that makes one optimizer step on a model of its own and returns the time it took."""
    precision = resolve_precision(recipe.training.precision, device)
    with torch.random.fork_rng(devices=[]):
        module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    if processes.shards:
        shard(module, parts_in(module), processes, device)
    else:
        module = module.to(device)
    teachers = Teachers.load(recipe, corpus, device)
    unit = Pretraining(recipe, module, Placement(device, precision), processes=processes, teachers=teachers)
    batches = make_batches(recipe, module, corpus, seed=0, processes=processes)

    def step(index: int) -> StepTime:
        began, worked = time.perf_counter(), work_clock(device)
        micro_batches = batches.step(index)  # in training the batch is made at the same time, but on the same cores
        float(optimize(unit, micro_batches, index)[NORM])  # waits for the device
        return StepTime(time.perf_counter() - began, work_clock(device) - worked)

    return step
