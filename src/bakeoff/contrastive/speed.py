"""The steps that a budget pays for, and the quickest number of threads, measured on copies of the training."""

import time
from collections.abc import Callable
from statistics import median

import torch

from bakeoff.contrastive.opened import Opened
from bakeoff.contrastive.unit import Contrast
from bakeoff.distributed.processes import ALONE
from bakeoff.errors import UserError
from bakeoff.resources.thread_choice import quickest
from bakeoff.resources.threads import default_threads
from bakeoff.trainer.step import NORM, optimize

MEASURED = 3
"""The number of steps that are measured for a budget in minutes, after a first one, which is slower."""


def steps_of(opened: Opened) -> int:
    """The number of steps that the budget pays for; for minutes, the speed of a copy is measured."""
    budget = opened.setting.config.budget
    if budget.steps is not None:
        return budget.steps
    if budget.words is not None:
        raise UserError("--budget words: words of texts are not counted here; give steps, tokens, epochs or minutes")
    with torch.random.fork_rng(devices=[]):
        unit = _copy(opened)
        tokens = _tokens_of_step(unit)
        seconds = None if budget.minutes is None else _seconds(unit)
        texts = opened.setting.texts.train
        return budget.steps_for(tokens, tokens * unit.flops(0), seconds, int(texts.lengths.sum()))


def _copy(opened: Opened) -> Contrast:
    """The training on a copy of the run, alone, for measurements."""
    unit = Contrast(opened.module(), opened.setting._replace(steps=1000, processes=ALONE))
    unit.begin()
    return unit


def _tokens_of_step(unit: Contrast) -> float:
    """The mean number of tokens of the first steps."""
    return sum(batch.tokens for step in range(MEASURED) for batch in unit.batches(step)) / MEASURED


def _step(unit: Contrast) -> Callable[[int], float]:
    """A function that does a step, with its number."""
    return lambda index: float(optimize(unit, unit.batches(index), index)[NORM])


def _seconds(unit: Contrast) -> float:
    """The median of the seconds of some steps."""
    step, times = _step(unit), []
    for index in range(1 + MEASURED):
        began = time.perf_counter()
        step(index)
        times.append(time.perf_counter() - began)
    return median(times[1:])


def quickest_threads(opened: Opened) -> int:
    """The quickest number of threads in a short measurement; of several processes torch's."""
    setting, budget = opened.setting, opened.setting.config.budget
    if not setting.processes.alone:
        return torch.get_num_threads()
    texts, unit = setting.texts.train, _copy(opened)
    tokens = _tokens_of_step(unit)

    def whole(seconds: float) -> float:
        if budget.minutes is not None:
            return 60 * budget.minutes
        return seconds * budget.steps_for(tokens, tokens * unit.flops(0), None, int(texts.lengths.sum()), 1.0)

    default = default_threads(opened.recipe, opened.run.tokenizer.size)
    return quickest(lambda: _step(_copy(opened)), tokens * unit.flops(0), whole, default)
