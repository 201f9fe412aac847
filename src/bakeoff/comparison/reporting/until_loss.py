"""How long recipes took to a stated held-out loss: seeds that reached it, steps and time."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, stdev

from bakeoff.comparison.comparable import comparable_losses
from bakeoff.comparison.pretraining_run import PretrainingRun
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.display.wording import counted, duration, listed, quantity, quoted
from bakeoff.report.elements import note, table


def reached(results: Results, entry: RecipeEntry) -> list[PretrainingRun]:
    """The pre-trainings of a recipe that have reached the loss."""
    loss = results.until_loss
    if loss is None:
        return []
    return [run for run in entry.runs if run.validation_loss is not None and run.validation_loss <= loss]


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
    about = (
        f"Each pre-training ended at the first measurement of a held-out loss of {results.until_loss:g} nats a target "
        "or less, which is measured as often as the recipe says (`validations`), or with its budget. Means ± standard "
        "deviations are over the seeds that reached it. The learning rate was still that of the whole budget."
    )
    names = ["Recipe", "seeds that reached it", "steps", "tokens", "time"]
    return "\n".join([f"<h2>Until a held-out loss of {results.until_loss:g}</h2>", note(about), table(names, rows)])


def _mean(values: Sequence[float], shown: Callable[[float], str]) -> str:
    if not values:
        return "–"
    return shown(fmean(values)) + (f" ± {shown(stdev(values))}" if len(values) > 1 else "")


def until_sentences(results: Results) -> Iterator[str]:
    """Sentences on the quickest recipe to the loss, and on those that did not reach it."""
    if results.until_loss is None:
        return
    loss = f"a held-out loss of {results.until_loss:g}"
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


def until_cautions(results: Results) -> Iterator[str]:
    """A warning where the loss is not the same measure for all recipes."""
    if results.until_loss is None:
        return
    of_objective = comparable_losses(results)
    if len({tuple(entry.label for entry in panel.entries) for panel in of_objective}) > 1:
        titles = listed([panel.title for panel in of_objective])
        yield (
            f"The held-out loss of {results.until_loss:g} is not the same for all recipes, for their losses are of "
            f"{titles}: times to it compare only among recipes of one objective."
        )
