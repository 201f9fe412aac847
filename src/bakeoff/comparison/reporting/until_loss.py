"""How long recipes took to a stated held-out loss: seeds that reached it, steps and time."""

from collections.abc import Callable, Iterator, Sequence
from math import exp
from statistics import fmean, stdev

from bakeoff.comparison.comparable import comparable_losses
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.time_to_loss import TimeToLoss
from bakeoff.comparison.until_loss import alike, reached
from bakeoff.display.wording import counted, duration, listed, p_value, quantity, quoted, quoted_list
from bakeoff.report.elements import note, table

MOST = 3
"""Most differences that are named in sentences."""
SPENT = {"tokens": "Tokens to the loss", "seconds": "Time to the loss"}
"""The heading of the table of what is compared."""


def _loss(results: Results) -> str:
    """The loss in words: 3.2, or 1.6 bits per byte."""
    return f"{results.until_loss:g}{'' if results.until_unit == 'nats' else f' {results.until_unit}'}"


def until_section(results: Results) -> str:
    """The section on the way to the loss; empty where none was asked for."""
    if results.until_loss is None:
        return ""
    rows = []
    for entry in results.recipes:
        there = reached(results, entry)
        cells = [f"{len(there)} of {len(entry.runs)}"]
        cells += [_mean([run.steps for run in there], lambda value: f"{value:,.0f}")]
        cells += [_mean([run.tokens for run in there], quantity), _mean([run.seconds for run in there], duration)]
        rows.append([entry.label, *cells])
    unit = " nats a target" * (results.until_unit == "nats")
    about = (
        f"Each pre-training ended at the first measurement of a held-out loss of {_loss(results)}{unit} or "
        "less, which is measured as often as the recipe says (`validations`), or with its budget. Means ± standard "
        "deviations are over the seeds that reached it. The learning rate was still that of the whole budget."
    )
    names = ["Recipe", "seeds that reached it", "steps", "tokens", "time"]
    parts = [f"<h2>Until a held-out loss of {_loss(results)}</h2>", note(about), table(names, rows)]
    if results.to_loss:
        parts.append(
            note(
                "How many times as much as the second of two recipes the first took, where all seeds of both reached "
                "the loss: the noise is that of other seeds, and the p-values are corrected for all pairs of a table."
            )
        )
    parts += [_pairs(each) for each in results.to_loss]
    return "\n".join(parts)


def _pairs(times: TimeToLoss) -> str:
    """The table of the ratios of what recipes took."""
    rows = []
    for pair in (each.turned for each in times.pairs):
        interval = "–" if pair.interval is None else " to ".join(map(_times, pair.interval))
        p = "–" if pair.adjusted_p is None else p_value(pair.adjusted_p)
        said = "no claim" if pair.real is None else "exceeds the noise" if pair.real else "within the noise"
        rows.append([f"{pair.first} : {pair.second}", _times(pair.difference), interval, p, said])
    return table([SPENT[times.spent], "times as much", "95 % interval", "p, corrected", "verdict"], rows)


def _times(log_ratio: float) -> str:
    """A ratio from its logarithm, in digits that tell it from 1."""
    return f"{exp(log_ratio):.2f}"


def _mean(values: Sequence[float], shown: Callable[[float], str]) -> str:
    if not values:
        return "–"
    return shown(fmean(values)) + (f" ± {shown(stdev(values))}" if len(values) > 1 else "")


def until_sentences(results: Results) -> Iterator[str]:
    """Sentences on the quickest recipe to the loss, and on those that did not reach it."""
    if results.until_loss is None:
        return
    loss = f"a held-out loss of {_loss(results)}"
    trained = [entry for entry in results.recipes if entry.runs]
    whole = [entry for entry in trained if len(reached(results, entry)) == len(entry.runs)]
    for entry in sorted(whole, key=lambda each: fmean(run.seconds for run in each.runs)):
        steps, seconds = (fmean(getattr(run, name) for run in entry.runs) for name in ("steps", "seconds"))
        yield f"{quoted(entry.label)} reached {loss} in {steps:,.0f} steps and {duration(seconds)}, all seeds."
    for entry in trained:
        there, seeds = len(reached(results, entry)), counted(len(entry.runs), "seed")
        if entry not in whole:
            did = f"reached {loss} in {there} of {seeds}" if there else f"did not reach {loss} in any of {seeds}"
            yield f"{quoted(entry.label)} {did}, within the budget."
    for times in results.to_loss:
        yield from _sooner(times, loss, everyone=len(whole) == len(trained))


def _sooner(times: TimeToLoss, loss: str, everyone: bool) -> Iterator[str]:
    """Sentences on the recipes that took less than others, beyond the noise; or that none did."""
    many, fewer, what = ("many", "fewer", "tokens") if times.spent == "tokens" else ("much", "less", "time")
    real = [pair.turned for pair in times.pairs if pair.real]
    for pair in real[:MOST]:
        assert pair.interval is not None
        low, high = map(_times, pair.interval)
        yield (
            f"{quoted(pair.first)} took {_times(pair.difference)} times as {many} "
            f"{what} to {loss} as {quoted(pair.second)}, beyond the noise (95 % interval {low} to {high})."
        )
    if not real and times.pairs and times.pairs[0].real is not None:
        those = "" if everyone else " of those that reached it with every seed"
        yield f"No recipe{those} has been shown to take {fewer} {what} to {loss} than another."


def until_cautions(results: Results) -> Iterator[str]:
    """Warnings where the loss is not the same measure for all recipes, and where losses are compared in the end."""
    if results.until_loss is None:
        return
    measured = [task.name for task in results.tasks if task.kind == "held_out_text"]
    there = sum(len(reached(results, entry)) for entry in results.recipes)
    all_of_them = sum(len(entry.runs) for entry in results.recipes)
    if measured and there:
        who = "Pre-trainings" if there == all_of_them else f"{there} of {all_of_them} pre-trainings"
        yield (
            f"{who} ended where they reached a held-out loss of {_loss(results)}: on {quoted_list(measured)} a "
            "difference says where they stopped, and not which of them learns more."
        )
    if len([*alike(results)]) > 1:
        titles = listed([panel.title for panel in comparable_losses(results)])
        yield (
            f"The held-out loss of {_loss(results)} is not the same for all recipes, for their losses are of "
            f"{titles}: times to it compare only among recipes of one objective."
        )
