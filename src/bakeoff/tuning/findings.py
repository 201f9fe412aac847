"""Findings of a search: its cost, the best trial, and cautions before relying on it."""

import math
from collections.abc import Iterator, Sequence
from statistics import stdev

from bakeoff.display.wording import budget as budget_words
from bakeoff.display.wording import counted, duration
from bakeoff.optimization.budget import Budget
from bakeoff.tuning.candidates import shown, written
from bakeoff.tuning.halving import most_work
from bakeoff.tuning.ranges import Range, is_number
from bakeoff.tuning.results import Trial

COST = ("training.optimizer.", "training.schedule.", "training.clip")
"""Beginnings of keys that do not change the cost of a step; `training.optimizer.kind` is the exception."""


def costs(key: str) -> bool:
    """Whether a key may change the time, the work or the tokens of a step."""
    return key == "training.optimizer.kind" or not key.startswith(COST)


def best(trials: Sequence[Trial]) -> int | None:
    """The number of the finished trial with the lowest held-out loss; None where all diverged."""
    finished = [(trial.losses[-1], trial.number) for trial in trials if trial.state == "finished"]
    return min(finished)[1] if finished else None


def cautions(ranges: Sequence[Range], trials: Sequence[Trial], winner: Trial, budget: Budget) -> list[str]:
    """Sentences of caution on the best trial, for people."""
    return [
        *(
            f"{each.key}: the best value, {written(winner.values[each.key])}, is the {word} that was tried; a better "
            f"one may lie beyond it: search again with another range, --over {each.key}=LOWEST..HIGHEST"
            for each, word in edges(ranges, trials, winner)
        ),
        _distance(trials, winner),
        *unequal(ranges, budget),
    ]


def edges(ranges: Sequence[Range], trials: Sequence[Trial], winner: Trial) -> Iterator[tuple[Range, str]]:
    """The ranges whose best value is at an edge of the tried values, each with `lowest` or `highest`."""
    for each in ranges:
        tried = [trial.values[each.key] for trial in trials]
        # In a list of two values both are edges, so an edge says nothing.
        if not all(map(is_number, tried)) or len({*tried}) < (2 if each.low is not None else 3):
            continue
        for edge, word in ((min, "lowest"), (max, "highest")):
            if winner.values[each.key] == edge(tried):
                yield each, word


def second_best(trials: Sequence[Trial], winner: Trial) -> Trial | None:
    """The second best of the trials that were trained to their end; None where there is one alone."""
    others = [trial for trial in trials if trial.state == "finished" and trial.number != winner.number]
    return min(others, key=lambda trial: (trial.losses[-1], trial.number)) if others else None


def _distance(trials: Sequence[Trial], winner: Trial) -> str:
    """A sentence on the distance between the second best trial and the best."""
    second = second_best(trials, winner)
    if second is None:
        return "only one trial was trained to its end, so that there is nothing to measure its loss by"
    distance = f"the second best ({shown(second.values)}) is {second.losses[-1] - winner.losses[-1]:.4f} behind"
    if winner.runs:
        return (
            f"{distance}, with a standard error of {standard_error(winner, second):.4f} over their "
            f"{len(winner.runs)} seeds; what is less than twice that may be chance"
        )
    return (
        f"{distance}; every trial "
        "has the same seed, so that the noise, what another seed would change, is unknown: before you rely on a small "
        "difference, search again with several, --seeds 3"
    )


def standard_error(one: Trial, other: Trial) -> float:
    """The standard error of the difference of two finished trials' last losses, paired by their common seeds."""
    pairs = zip(one.runs, other.runs, strict=True)
    return stdev(a.losses[-1] - b.losses[-1] for a, b in pairs) / math.sqrt(len(one.runs))


def unequal(ranges: Sequence[Range], budget: Budget) -> list[str]:
    """A caution if the budget is in steps and a searched key may change the cost of a step; else an empty list."""
    keys = [each.key for each in ranges if costs(each.key) and each.size > 1]
    if budget.steps is None or not keys:
        return []
    return [
        f"the budget is in steps, and {', '.join(keys)} may change what a step costs or reads: trials with the same "
        "steps did not spend the same; a budget in minutes, flops or tokens is the same for all"
    ]


def coming_cost(trials: Sequence[Trial], seeds: int, budget: Budget) -> str:
    """A line on the most that a search will cost, with this number of seeds of each trial."""
    most = most_work([trial.evaluations for trial in trials]) * seeds
    steps = sorted({trial.steps for trial in trials})
    each = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    each = "" if budget.steps else f" ({each} steps)"
    time = "" if budget.minutes is None else f", {duration(60 * budget.minutes * most)} of training in turn"
    several = f" with {counted(seeds, 'seed')}" if seeds > 1 else ""
    early = "bad ones are stopped early" if most < len(trials) * seeds else "none is stopped early"
    return (
        f"{counted(len(trials), 'trial')} of {budget_words(str(budget))}{each} each{several}; {early}: all cost "
        f"{most:.3g} full trainings at most{time}"
    )
