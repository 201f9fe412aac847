"""The threads of a training, and the number of trainings that run side by side on this machine.

Threads divide sums, so that their number decides the last bits of a result. Therefore results that must be reproducible
record the number, and the number of trainings side by side does not change it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch

from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.machine.capacity import free_memory, usable_cores
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device
from bakeoff.resources.memory_need import BYTES_PER_NUMBER, memory_need

P = ParamSpec("P")
R = TypeVar("R")

LARGE = 1e11
"""Floating-point operations of a pass, forward and backward, of a batch or micro-batch from which on threads share the
work well. Below, trainings with one thread each, side by side, do more together."""

PROCESS = 400 << 20
"""Bytes of a process without a model."""

PROCESS_WITH_GPU = 3 << 30
"""Bytes that a process without a model is assumed to take of the machine's memory, once it uses a GPU."""

SPARE = 1.3
"""Factor on the counted memory, for temporary memory of single operations and for held-out rows."""


class SharedMachine(NamedTuple):
    """The division of a machine among the trainings of a comparison or a search."""

    threads: int
    """Number of threads of each training."""
    devices: list[str]
    """Device of each of the trainings at once."""

    @property
    def jobs(self) -> int:
        """Number of trainings at once."""
        return len(self.devices)


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Set torch's number of threads in a context; None: leave it, and restore it at the end."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def restoring_threads(function: Callable[P, R]) -> Callable[P, R]:
    """A function that restores torch's number of threads when it ends."""

    @wraps(function)
    def restored(*arguments: P.args, **options: P.kwargs) -> R:
        with using_threads(None):
            return function(*arguments, **options)

    return restored


def default_threads(recipe: Recipe, vocabulary: int) -> int:
    """Threads of a training that runs alone, without a measurement: 1 for a small model, all cores for a large one."""
    return usable_cores() if _any_large([recipe], vocabulary) else 1


def side_by_side(
    recipes: Sequence[Recipe], vocabulary: int, device: str, threads: int | None = None, jobs: int | None = None
) -> SharedMachine | None:
    """The division of this machine among trainings of recipes; None: one training at a time, as on a single GPU.

    Small models get one thread each, with as many trainings at once as cores. If memory does not suffice for these, the
    cores are divided among those that fit. If a model is large, one training gets all cores. Of several GPUs each gets
    one training at once, or its share of the given number.

    Args:
        recipes: the recipes to be trained.
        vocabulary: the size of the tokenizer.
        device: auto, cpu, cuda or mps.
        threads: a given number of threads of each training; None: choose it.
        jobs: a given number of trainings at once; None: choose it.
    """
    if resolve_device(device).type != "cpu":
        gpus = _gpus(device)
        if jobs is None and len(gpus) == 1:
            return None
        jobs = jobs or len(gpus)
        devices = [gpus[index % len(gpus)] for index in range(jobs)]
        return SharedMachine(threads or max(1, torch.get_num_threads() // jobs), devices)
    cores = usable_cores()
    if threads is None:
        threads = max(1, cores // (1 if _any_large(recipes, vocabulary) else _that_fit(recipes, vocabulary, cores)))
    if jobs is None:
        jobs = _that_fit(recipes, vocabulary, max(1, cores // threads))
    return SharedMachine(threads, [device] * jobs)


def _gpus(device: str) -> list[str]:
    """The devices that a device stands for: every GPU of CUDA, unless one is named; any other device alone."""
    any_of_them = resolve_device(device).type == "cuda" and ":" not in device
    count = torch.cuda.device_count() if any_of_them else 1
    return [device] if count == 1 else [f"cuda:{index}" for index in range(count)]


def _any_large(recipes: Sequence[Recipe], vocabulary: int) -> bool:
    return any(operations_of_a_pass(recipe, vocabulary) >= LARGE for recipe in recipes)


def operations_of_a_pass(recipe: Recipe, vocabulary: int) -> float:
    """Floating-point operations of a pass, forward and backward, of a batch or micro-batch."""
    rows = recipe.training.rows_at_once(recipe.input.length)
    return rows * recipe.input.length * build_on_meta(recipe, vocabulary).flops_per_token()


def _that_fit(recipes: Sequence[Recipe], vocabulary: int, most: int) -> int:
    """Number of trainings that fit into memory, at most `most`; the recipe with most operations stands for all."""
    free = free_memory()
    if most == 1 or free is None:
        return most
    largest = max(recipes, key=lambda recipe: operations_of_a_pass(recipe, vocabulary))
    return max(1, min(most, int(free / needed_memory(largest, vocabulary, torch.device("cpu")))))


def needed_memory(recipe: Recipe, vocabulary: int, device: torch.device) -> int:
    """Bytes of the machine's memory, not of its GPU, that a process needs which trains a recipe.

    Of a training on a GPU the machine holds the copies of a checkpoint.
    """
    if device.type == "cpu":
        return round(PROCESS + SPARE * memory_need(recipe, vocabulary, device).total)
    module = build_on_meta(recipe, vocabulary)
    saved = module.parameter_count() + recipe.training.optimizer.kept(module)
    return round(PROCESS_WITH_GPU + SPARE * BYTES_PER_NUMBER * saved)
