"""The searches of a comparison in its report: the chosen values, the cost, cautions, and figures."""

import json
import math
from collections.abc import Iterator
from statistics import stdev
from typing import Any

from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.display.wording import counted, duration, listed, quoted, quoted_list, verb
from bakeoff.optimization.budget import Budget
from bakeoff.report.charts import Figure
from bakeoff.report.elements import legend, note, panels, table
from bakeoff.tuning.candidates import short, shown, written
from bakeoff.tuning.findings import edges, second_best, standard_error, unequal
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.report import evaluation_styles, loss_figures
from bakeoff.tuning.results import Trial

COLUMNS = ("recipe", "best trial", "trained with", "its own", "held-out loss", "second behind", "cost", "time")
"""The column heads of the table of chosen values."""

MOSTLY = 0.8
"""The share of a task's fine-tunings that say that their range of rates ends too early."""

NOT_SEARCHED = (
    "The learning rates{} are those of recipes and plan, not searched here: a difference may be one of learning rates "
    "and not of models. `search` in the plan searches them."
)
"""The caution of a comparison without searches; braces stand for the trainings that it is about, where not for all."""


def rows(results: Results) -> Iterator[list[str]]:
    """The rows of the table of chosen values, one for each recipe; the cost is counted in whole pre-trainings."""
    for entry in results.recipes:
        search = entry.search
        if search is None or results.search is None:
            yield [entry.label, "not searched", *[""] * (len(COLUMNS) - 2)]
            continue
        second = second_best(search.trials, search.winner)
        yield [
            entry.label,
            shown(search.winner.values),
            ", ".join(written(_used(entry, key, value)) for key, value in search.winner.values.items()),
            ", ".join(written(search.before[key]) for key in search.winner.values),
            f"{search.winner.losses[-1]:.4f}",
            "-" if second is None else f"{second.losses[-1] - search.winner.losses[-1]:.4f}",
            f"{search.full_trainings * results.search.share:.2f}",
            duration(search.seconds),
        ]


def transferred(results: Results) -> str:
    """A paragraph on the searches: their length, their seeds, and the values transferred to the trainings."""
    assert results.search is not None
    last = results.search.seeds - 1
    seeds = "seed 0" if last == 0 else f"the seeds 0 to {last}, whose mean counts"
    return (
        f"Each searched recipe had {counted(results.search.trials, 'trial')} at most before the first pre-training, a "
        f"whole one {results.search.budget} of a pre-training's budget, bad ones stopped early; all with "
        f"{seeds}, and judged by the loss on the corpus's validation split alone, never by a task. The values of the "
        f"best trial are transferred to the trainings{_rules(results)}."
    )


def _rules(results: Results) -> str:
    """The end of a sentence on the change of the learning rates between search and training."""
    changed = {
        entry.label: (entry.search.winner.values[RATE], rate)
        for entry in results.recipes
        if entry.search is not None and (rate := _rate_of(entry)) != entry.search.winner.values[RATE]
    }
    if not changed:
        return " unchanged"
    changes = [f"{quoted(label)} from {written(old)} to {written(new)}" for label, (old, new) in changed.items()]
    return f", their learning rates adjusted to the longer training: {listed(changes)}"


def _used(entry: RecipeEntry, key: str, searched: Any) -> Any:
    """The value of a searched key in the trainings; of all keys the learning rate alone may change on its way there."""
    return _rate_of(entry) if key == RATE else searched


def _rate_of(entry: RecipeEntry) -> float:
    rate: float = entry.recipe["training"]["optimizer"]["lr"]
    return rate


def _several_rates_each(results: Results) -> bool:
    """Whether each recipe is compared with several learning rates, as where a grid has them."""
    rates: dict[str, set[str]] = {}
    for entry in results.recipes:
        training = entry.recipe.get("training", {})
        optimizer = training.get("optimizer", {})
        others = entry.recipe | {"name": None, "training": training | {"optimizer": optimizer | {"lr": None}}}
        rest = json.dumps([others, str(entry.starts), str(entry.corpus)], sort_keys=True, default=str)
        rates.setdefault(rest, set()).add(written(optimizer.get("lr")))
    return all(len(each) > 1 for each in rates.values())


def search_cautions(results: Results) -> Iterator[str]:
    """Cautions about the values that the recipes were trained with, one for each kind of thing to know."""
    if results.search is None:
        if not _several_rates_each(results):
            scores = [score for entry in results.recipes for score in entry.scores]
            finetuned = bool(scores) and all(len(score.tried) > 1 for score in scores)
            yield NOT_SEARCHED.format(" of pre-training" if finetuned else "")
        return
    unsearched = [entry.label for entry in results.recipes if entry.search is None or len(entry.search.trials) < 2]
    if unsearched:
        were = verb(len(unsearched), "was", "were")
        those = quoted_list(unsearched)
        yield f"{those} {were} not searched: what the others gain by their search is no merit of theirs."
    searched = [entry for entry in results.recipes if entry.search is not None and entry.label not in unsearched]
    if at_edge := [text for entry in searched for text in _edges(entry)]:
        yield (
            f"The best value that was tried is the last of its range for {listed(at_edge)}; a better one may lie "
            "beyond, so that these recipes may be better than they look here."
        )
    if close := [text for entry in searched for text in _close(entry)]:
        yield f"The two best trials are closer than can be told for {listed(close)}."
    if alone := [entry.label for entry in searched if entry.search and _second(entry) is None]:
        those = quoted_list(alone)
        yield f"Of {those} one trial alone was trained to its end, so that its loss is compared with no other."
    if searched:
        yield (
            "Each recipe was searched once, and all its seeds are trained with the values of its best trial: how much "
            "luck was in this choice is in no interval. Verdicts are about the recipes with these values. In "
            "simulations this luck leaves 7 % of false claims at most if it is a quarter of a seed's, and makes 22 % "
            "if it is half."
        )
    if results.search.share < 1:
        yield (
            f"The searched values were chosen at {results.search.budget} of a pre-training's budget and transferred to "
            f"the whole one{_rules(results)}; what is best there may differ."
        )
    differences = [
        line
        for entry in results.recipes
        if entry.search
        for line in unequal(entry.search.ranges, Budget.parse_text(results.budget.of(entry.label)))
    ]
    yield from (f"In the searches {line}." for line in dict.fromkeys(differences))


def finetuning_cautions(results: Results) -> Iterator[str]:
    """Cautions on tasks of which most fine-tunings chose the highest, or the lowest, of the rates that they tried."""
    for word, further, place in (("highest", "higher", -1), ("lowest", "lower", 0)):
        tasks = []
        for task in results.tasks:
            scores = [
                score
                for entry in results.recipes
                for score in entry.scores
                if score.task == task.name and len(score.tried) > 1
            ]
            # One choice among two rates says nothing, but nearly all choices of one side do.
            chosen = sum(score.learning_rate == score.tried[place] for score in scores)
            if scores and chosen >= MOSTLY * len(scores):
                tasks.append(f"{quoted(task.name)} ({chosen} of {len(scores)})")
        if tasks:
            yield (
                f"Of the learning rates that were tried for fine-tuning dev chose the {word} one nearly always on "
                f"{listed(tasks)}; a {further} one may be better, for one recipe more than for another."
            )


def _edges(entry: RecipeEntry) -> Iterator[str]:
    """The best values at the edge of what was tried: bert-mini (training.optimizer.lr 0.01, the highest)."""
    search = entry.search
    assert search is not None
    values = [
        f"{each.key} {written(search.winner.values[each.key])}, the {word}"
        for each, word in edges(search.ranges, search.trials, search.winner)
    ]
    if values:
        yield f"{quoted(entry.label)} ({'; '.join(values)})"


def _second(entry: RecipeEntry) -> Trial | None:
    assert entry.search is not None
    return second_best(entry.search.trials, entry.search.winner)


def _close(entry: RecipeEntry) -> Iterator[str]:
    """The recipe where another seed might have chosen another trial, by the spread of whole trainings over seeds."""
    search, second = entry.search, _second(entry)
    assert search is not None
    if second is None:
        return
    distance = second.losses[-1] - search.winner.losses[-1]
    if search.seeds > 1:
        noise = standard_error(search.winner, second)
        within, known = distance <= 2 * noise, f"with a standard error of {noise:.4f} over {search.seeds} seeds"
    else:
        losses = [run.validation_loss for run in entry.runs if run.validation_loss is not None]
        if len(losses) < 2 or search.measured_as:
            return
        noise = math.sqrt(2) * stdev(losses)
        within, known = distance <= noise, f"where two seeds of its pre-training differ by {noise:.4f}"
    if within:
        trials = f"{shown(search.winner.values)}; {shown(second.values)}"
        yield f"{quoted(entry.label)} ({trials}: {distance:.4f} apart, {known})"


def search_figures(results: Results) -> list[Figure]:
    """The figures of held-out losses over the searched values, for each recipe."""
    figures = []
    for number, entry in enumerate(results.recipes, 1):
        if entry.search is None:
            continue
        for key, figure in loss_figures(entry.search, f"search-{number}"):
            caption = f"held-out loss over {short(key)}; {written(entry.search.winner.values[key])} is chosen"
            figures.append(figure._replace(title=entry.label, caption=caption))
    return figures


def search_section(results: Results, figures: list[Figure]) -> str:
    """The section of the searches, with table and figures; empty if the plan has no search."""
    if results.search is None:
        return ""
    parts = [
        "<h2>What was searched before</h2>",
        note(f"{transferred(results)} Cost: in pre-trainings, beside the budget."),
        table(COLUMNS, rows(results), text=2),
        note(
            "Each dot is a trial at one of the steps at which all were compared; only dots of one colour compare, and "
            "only within a recipe. A cross at the top is a trial that diverged, the dashed line the value that was "
            "chosen."
        ),
    ]
    styles: dict[str, tuple[str, list[int]]] = {}
    for entry in results.recipes:
        styles |= evaluation_styles(entry.search) if entry.search is not None else {}
    return "\n".join([*parts, legend(styles), *panels(figures, titled=True)])
