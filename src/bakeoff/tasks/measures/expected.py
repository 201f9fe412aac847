"""How long a measurement will take, from a part of its rows that a model with random weights reads."""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from typing_extensions import override

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.tokenizer.tokenizer import Tokenizer

SECONDS = 0.5
"""Seconds that the last part takes at least, unless it is the whole."""

LONG = 4.0
"""Seconds after which the first reading of a row, which is slower than later ones, is not repeated."""


class UntrainedRun(Run):
    """A run without a directory: the model of a recipe with random weights, which take as long as others.

    Args:
        recipe: the recipe.
        tokenizer: the tokenizer.
    """

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer) -> None:
        self.path = Path(recipe.name)
        self.recipe, self.tokenizer = recipe.with_tokenizer(tokenizer.config), tokenizer

    @override
    def load(self, device: torch.device | None = None) -> PretrainingModel:
        with torch.random.fork_rng(devices=[]):
            module = PretrainingModel(self.recipe, self.tokenizer.size)
        return module.to(device or torch.device("cpu")).eval()


def seconds_of_rows(read: Callable[[int], object], count: int) -> float:
    """Seconds of reading rows, from the time of as many of them as take `SECONDS`.

    Args:
        read: a function that reads so many of the rows, spread evenly over all.
        count: the number of all rows.
    """
    size = min(1, count)
    seconds = _seconds(read, size)
    if seconds < LONG:
        seconds = _seconds(read, size)
        while size < count and seconds < SECONDS:
            size = min(count, 2 * size)
            seconds = _seconds(read, size)
    return seconds * count / max(1, size)


def _seconds(read: Callable[[int], object], size: int) -> float:
    began = time.perf_counter()
    read(size)
    return time.perf_counter() - began


def seconds_of_steps(of_row: Callable[[int], object], whole: Callable[[int], object], steps: int, batch: int) -> float:
    """Seconds of a training's steps; a step of a model that is large for the machine takes minutes, and is not tried.

    Args:
        of_row: a function that takes so many steps with one row each.
        whole: a function that takes so many whole steps.
        steps: the number of steps.
        batch: rows of a step.
    """
    row = seconds_of_rows(of_row, 1)
    return row * batch * steps if row >= SECONDS else seconds_of_rows(whole, steps)
