"""How many threads a training computes with, and how many trainings side by side suit this machine.

Sums are cut among threads, so that their number decides the last bits of a result: where results are to be the same
again, the number is kept with them, and the trainings that run side by side do not change it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch

from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe import Recipe
from bakeoff.resources.device import resolve_device
from bakeoff.resources.memory_need import memory_need
from bakeoff.workers.machine import free_memory, usable_cores

P = ParamSpec("P")
R = TypeVar("R")

LARGE = 1e11
"""Floating-point operations of one pass of a batch, or of a part of it, forward and backward, from which on threads
share the work well. Below, trainings of one thread side by side do more together."""

PROCESS = 400 << 20
"""Bytes that a process takes before it has a model."""

SPARE = 1.3
"""Factor on the memory that is counted, for what single operations need for a moment, and the held-out rows."""


class SharedMachine(NamedTuple):
    """How the trainings of a comparison or a search share a machine."""

    threads: int
    """Threads of each training."""
    jobs: int
    """How many at once."""


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Within it torch computes with so many threads; None: with as many as it has."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def restoring_threads(function: Callable[P, R]) -> Callable[P, R]:
    """A function that may set torch's threads, and leaves them as they were."""

    @wraps(function)
    def restored(*arguments: P.args, **options: P.kwargs) -> R:
        with using_threads(None):
            return function(*arguments, **options)

    return restored


def default_threads(recipe: Recipe, vocabulary: int) -> int:
    """Threads of a training that runs alone and was not measured: one for a small model, all cores for a large one."""
    return usable_cores() if _any_large([recipe], vocabulary) else 1


def side_by_side(
    recipes: Sequence[Recipe], vocabulary: int, device: str, threads: int | None = None, jobs: int | None = None
) -> SharedMachine | None:
    """How trainings of these recipes are to share this machine; None: one at a time, as on a GPU.

    Small models have a thread each and as many at once as there are cores. Where memory does not suffice for so many,
    the cores are shared among those that fit; where a model is large, one training has all of them.

    Args:
        recipes: what is trained.
        vocabulary: the tokenizer's size.
        device: auto, cpu, cuda or mps.
        threads: of each, where that is settled; it does not change any more.
        jobs: how many at once, where somebody has said so.
    """
    if resolve_device(device).type != "cpu":
        return None if jobs is None else SharedMachine(threads or torch.get_num_threads(), jobs)
    cores = usable_cores()
    if threads is None:
        threads = max(1, cores // (1 if _any_large(recipes, vocabulary) else _that_fit(recipes, vocabulary, cores)))
    if jobs is None:
        jobs = _that_fit(recipes, vocabulary, max(1, cores // threads))
    return SharedMachine(threads, jobs)


def _any_large(recipes: Sequence[Recipe], vocabulary: int) -> bool:
    return any(operations_of_a_pass(recipe, vocabulary) >= LARGE for recipe in recipes)


def operations_of_a_pass(recipe: Recipe, vocabulary: int) -> float:
    """Operations of one pass of a batch, or of a part of it, forward and backward."""
    rows = recipe.training.rows_at_once(recipe.input.length)
    return rows * recipe.input.length * build_on_meta(recipe, vocabulary).flops_per_token()


def _that_fit(recipes: Sequence[Recipe], vocabulary: int, most: int) -> int:
    """How many trainings have room in memory, up to so many; the one with most to compute stands for all."""
    free = free_memory()
    if most == 1 or free is None:
        return most
    largest = max(recipes, key=lambda recipe: operations_of_a_pass(recipe, vocabulary))
    need = PROCESS + SPARE * memory_need(largest, vocabulary, torch.device("cpu")).total
    return max(1, min(most, int(free / need)))
