"""Which pre-trainings reached the held-out loss that a plan asks for, and what they took."""

from collections.abc import Iterator
from statistics import fmean

from bakeoff.comparison.comparable import comparable_losses
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.pretraining_run import PretrainingRun
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.comparison.statistics.time_to_loss import Spent, TimeToLoss, time_to_loss

SPENT: tuple[Spent, ...] = ("tokens", "seconds")
"""What is compared of the ways to a loss."""


def reached(results: Results, entry: RecipeEntry) -> list[PretrainingRun]:
    """The pre-trainings of a recipe that have reached the loss."""
    if results.until_loss is None:
        return []
    ended = [(run, _last_loss(results, run)) for run in entry.runs]
    return [run for run, loss in ended if loss is not None and loss <= results.until_loss]


def _last_loss(results: Results, run: PretrainingRun) -> float | None:
    """The last held-out loss of a pre-training, in the unit of the loss that is asked for; None: it has none."""
    if results.until_unit == "nats":
        return run.validation_loss
    bits = [*run.curve[-1].bits_per_byte.values()] if run.curve else []
    return fmean(bits) if bits else None


def alike(results: Results) -> Iterator[list[RecipeEntry]]:
    """The recipes whose held-out loss is one measure: of the same objectives, settings and text."""
    panels = comparable_losses(results)
    kinds: dict[tuple[int, ...], list[RecipeEntry]] = {}
    for entry in results.recipes:
        of_entry = tuple(number for number, panel in enumerate(panels) if entry in panel.entries)
        if of_entry:
            kinds.setdefault(of_entry, []).append(entry)
    yield from kinds.values()


def times_to_loss(results: Results) -> list[TimeToLoss]:
    """What recipes took to the loss, against each other; those that did not reach it with every seed are left out."""
    if results.until_loss is None:
        return []
    asking = Asking(baseline=results.baseline, looks=len(results.looks))
    compared = []
    for entries in alike(results):
        whole = {each.label: each.runs for each in entries if len(reached(results, each)) == len(each.runs)}
        if len(whole) > 1:
            compared += [time_to_loss(whole, spent, asking) for spent in SPENT]
    return compared
