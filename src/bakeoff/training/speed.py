"""How long a step takes, measured on a copy of the training so that the training itself is not touched."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch

from bakeoff.corpus.mixture import AnyCorpus, Mixture, open_corpus
from bakeoff.corpus.store import Corpus
from bakeoff.optimization.curriculum import shares
from bakeoff.recipe import Recipe
from bakeoff.training.device import resolve_device, resolve_precision
from bakeoff.training.loop import optimize
from bakeoff.training.memory import Memory
from bakeoff.training.pretraining_model import PretrainingModel
from bakeoff.training.stages import make_batches

MEASURE_SECONDS = 5.0
"""Time to measure each recipe for, behind its first step, which is slower."""

FEWEST_STEPS = 3
"""Steps to measure at least."""


def seconds_per_step(
    recipes: Sequence[Recipe], corpus: AnyCorpus | Path, device: str = "auto", seconds: float = MEASURE_SECONDS
) -> list[float]:
    """Median time of an optimizer step of each recipe, without compilation; the recipes take turns.

    Of a recipe with a curriculum it is the mean over the training: each stage is measured.
    """
    opened = corpus if isinstance(corpus, Corpus | Mixture) else open_corpus(corpus)
    on = resolve_device(device)
    stages = [recipe.stages() for recipe in recipes]
    steps = [_stepper(stage, opened, on) for own in stages for stage in own]
    for step in steps:
        step(0)
    measured = iter(medians_in_turns(steps, seconds))
    parts = [shares(recipe.training.curriculum) for recipe in recipes]
    return [sum(share * next(measured) for share in own) for own in parts]


def medians_in_turns(measures: Sequence[Callable[[int], float]], seconds: float) -> list[float]:
    """The median of each measure, called in turns until so many seconds each have passed.

    Turns, so that whatever else the machine does hits all of them alike. A measure is told its turn, counted from 1.
    """
    times: list[list[float]] = [[] for _ in measures]
    began, index = time.perf_counter(), 1
    while index <= FEWEST_STEPS or time.perf_counter() - began < seconds * len(measures):
        for measure, own in zip(measures, times, strict=True):
            own.append(measure(index))
        index += 1
    return [median(own) for own in times]


def _stepper(recipe: Recipe, corpus: AnyCorpus, device: torch.device) -> Callable[[int], float]:
    """A function that makes one optimizer step on a model of its own and returns the time it took."""
    precision = resolve_precision(recipe.training.precision, device)
    with torch.random.fork_rng(devices=[]):
        module = PretrainingModel(recipe, corpus.tokenizer.size).to(device).train()
    optimizer = recipe.training.optimizer.build(module)
    batches = make_batches(recipe, module, corpus, seed=0)
    memory = Memory(module.model) if recipe.input.continues else None

    def step(index: int) -> float:
        began = time.perf_counter()
        parts = batches.step(index)  # in training it is made beside, but on the same cores
        means = optimize(module, optimizer, parts, recipe, 0, index, device, precision, memory=memory)
        float(means["gradient_norm"])  # waits for the device
        return time.perf_counter() - began

    return step
