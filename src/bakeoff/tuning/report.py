"""The results of a search for people: a page with a chart of losses over each key, and a table on the terminal."""

import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair

from bakeoff.display.console import Console, titled_table
from bakeoff.display.wording import budget, counted, duration, quantity
from bakeoff.durable import write_atomically
from bakeoff.recipe import Recipe
from bakeoff.report.charts import Figure, axis_scale, colour_scale, on_page, styles
from bakeoff.report.elements import folded, legend, note, opening, panels, table
from bakeoff.report.page import html_page
from bakeoff.tuning.candidates import short, shown, written
from bakeoff.tuning.ranges import RATE, Range, is_logarithmic, is_number
from bakeoff.tuning.results import Trial, TuningResults

DIVERGED = "diverged"


def write_report(results: TuningResults, recipe: Recipe, path: Path) -> None:
    """Write the page; it needs no network."""
    figures = [figure for _, figure in loss_figures(results, "key")]
    title = f"The best values for {results.recipe}"
    about = (
        f"{counted(len(results.trials), 'trial')}, {budget(results.budget)} each, {seeds_text(results)} · "
        f"{results.corpus} · {results.environment.get('device_name', '')}"
    )
    keys = [each.key for each in results.ranges]
    body = [
        *opening(about, f"{results.recipe}: {shown(results.winner.values)}", answers(results), results.cautions),
        "<h2>Loss over what was searched</h2>",
        note(
            "Each dot is a trial at one of the steps at which all were compared; only dots of one colour compare. "
            f"{_bars(results)}At each such step the worst were stopped. A cross at the top is a trial that diverged, "
            "the dashed line the best value."
        ),
        legend(evaluation_styles(results)),
        *panels(figures),
        "<h2>Trials</h2>",
        table(columns(keys), (cells(trial, keys) for trial in results.ranked)),
        "<h2>The recipe</h2>",
        folded(recipe.name, recipe.to_yaml()),
    ]
    write_atomically(path, html_page(title, "\n".join(body), on_page(figures, 300)))


def transfer_lines(results: TuningResults) -> list[str]:
    """A line on how the rate was transferred to another budget; an empty list where none was asked for."""
    transferred = results.transferred
    if transferred is None:
        return []
    return [
        f"the recipe is for {budget(transferred.budget)} ({transferred.steps:,} steps): the rate of the best trial, "
        f"{written(results.winner.values[RATE])}, is transferred {transferred.rule}, to {written(transferred.rate)}"
    ]


def _bars(results: TuningResults) -> str:
    return "" if results.seeds == 1 else "A bar is the standard deviation over seeds to either side. "


def seeds_text(results: TuningResults) -> str:
    """The seeds of each trial, in words."""
    last = results.seed + results.seeds - 1
    return f"seed {results.seed}" if results.seeds == 1 else f"the mean over the seeds {results.seed} to {last}"


def answers(results: TuningResults) -> list[str]:
    """The best trial, the result of the recipe's own values, and the cost, one sentence each."""
    winner = results.winner
    lines = [f"the best trial is {winner.name} ({shown(winner.values)}): held-out loss {_loss(winner)}"]
    unchanged = next((trial for trial in results.trials if trial.values == results.before), None)
    if unchanged is not None and unchanged.number == winner.number:
        lines.append("these are the recipe's own values")
    elif unchanged is not None:
        lines.append(f"the recipe's own values ({shown(unchanged.values)}): {_fate(unchanged)}")
    if results.measured_as:
        lines.append(f"all trials were measured under the recipe's own {' and '.join(results.measured_as)}")
    lines += transfer_lines(results)
    lines.append(
        f"the search cost {results.full_trainings:.3g} full trainings: {duration(results.seconds)} in steps, "
        f"{quantity(results.tokens)} tokens"
    )
    return lines


def _fate(trial: Trial) -> str:
    if trial.loss is None:
        return DIVERGED
    end = "" if trial.state == "finished" else f" at step {trial.step:,} of {trial.steps:,}, where it was stopped"
    return f"held-out loss {_loss(trial)}{end}"


def _loss(trial: Trial) -> str:
    """The last loss in words, with its standard deviation over seeds if there are several."""
    if trial.loss is None:
        return "-"
    return f"{trial.loss:.4f}" + (f" ± {trial.spreads[-1]:.4f}" if trial.spreads else "")


def _evaluation_name(trial: Trial, evaluation: int) -> str:
    share = trial.evaluations[evaluation] / trial.steps
    return "at the end" if evaluation == len(trial.evaluations) - 1 else f"after {100 * share:.0f} % of the steps"


def evaluation_styles(results: TuningResults) -> dict[str, tuple[str, list[int]]]:
    """Colour and dash of the dots of each evaluation."""
    return styles(_names(results))


def loss_figures(results: TuningResults, name: str) -> list[tuple[str, Figure]]:
    """Each searched key that had several values, with a figure of the losses over it.

    Args:
        results: results of the search.
        name: beginning of the figures' names.
    """
    searched = [(number, each) for number, each in enumerate(results.ranges) if each.size > 1]
    return [(each.key, _figure(results, each, f"{name}-{number}")) for number, each in searched]


def _names(results: TuningResults) -> list[str]:
    """The names of the evaluations from the last to the first, so that the last has the first colour."""
    longest = results.winner
    return [_evaluation_name(longest, evaluation) for evaluation in reversed(range(len(longest.evaluations)))]


def _placed(value: Any) -> Any:
    """The position of a value on an axis: a number itself, or the text of any other value."""
    return value if isinstance(value, int | float) else written(value)


def _dots(results: TuningResults, key: str) -> Iterator[dict[str, Any]]:
    names = list(reversed(_names(results)))
    for trial in results.trials:
        value = trial.values[key]
        shared = {"x": _placed(value), "values": shown(trial.values)}
        for evaluation, loss in enumerate(trial.losses):
            row = {**shared, "y": float(f"{loss:.6g}"), "evaluation": names[evaluation], "trial": trial.name}
            if trial.spreads:
                low, high = loss - trial.spreads[evaluation], loss + trial.spreads[evaluation]
                row |= {"low": float(f"{low:.6g}"), "high": float(f"{high:.6g}")}
            yield row


def _figure(results: TuningResults, searched: Range, name: str) -> Figure:
    """The figure of the losses over one key, a dot for each evaluation of a trial."""
    rows = list(_dots(results, searched.key))
    evaluations = evaluation_styles(results)
    title = short(searched.key)
    tried = [trial.values[searched.key] for trial in results.trials]
    numbers = all(map(is_number, tried))
    x: Any = altair.X("x:N", title=title, sort=None)
    if numbers:
        scale = altair.Scale(type="log", zero=False, nice=False, padding=16)
        if not is_logarithmic(min(tried), max(tried)):
            scale = axis_scale(tried, 0.0 if min(tried) >= 0 else -math.inf)
        axis = altair.Axis(format="~g", tickCount=6, labelOverlap="greedy", labelSeparation=8)
        x = altair.X("x:Q", title=title, scale=scale, axis=axis)
    losses = [row[key] for row in rows for key in ("y", "low", "high") if key in row]
    height = axis_scale(losses or [0.0], 0.0)
    base = altair.Chart().encode(
        x=x,
        y=altair.Y("y:Q", title="held-out loss", scale=height),
        color=altair.Color("evaluation:N", title=None, scale=colour_scale(evaluations)),
        tooltip=[
            altair.Tooltip("trial:N"),
            altair.Tooltip("values:N"),
            altair.Tooltip("evaluation:N"),
            altair.Tooltip("y:Q", title="held-out loss", format=".4f"),
        ],
    )
    layers: list[Any] = [base.mark_point(filled=True, size=60, opacity=0.9)]
    if numbers and len(results.ranges) == 1:
        layers.insert(0, base.mark_line(strokeWidth=1, opacity=0.5))
    if results.seeds > 1:
        bars = base.mark_rule(strokeWidth=1.2).encode(y=altair.Y("low:Q", title="held-out loss"), y2="high:Q")
        layers.append(bars)
    if lost := [
        {"x": trial.values[searched.key], "values": shown(trial.values)}
        for trial in results.trials
        if trial.diverged is not None and numbers
    ]:
        cross = altair.Chart(altair.Data(values=lost)).mark_point(shape="cross", angle=45, size=70, filled=True)
        layers.append(cross.encode(x=x, y=altair.value(6), tooltip=[altair.Tooltip("values:N", title=DIVERGED)]))
    best = altair.Chart(altair.Data(values=[{"x": _placed(results.winner.values[searched.key])}]))
    layers.append(best.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(x=x))
    chart = altair.layer(*layers, data=altair.Data(values=rows))  # one copy of the rows for all layers
    return Figure(name, searched.key, f"held-out loss over {searched.key}", chart)


def columns(keys: list[str]) -> list[str]:
    """The heads of the columns in the table of trials."""
    return ["trial", *map(short, keys), "held-out loss", "at step", "time", "state"]


def cells(trial: Trial, keys: list[str]) -> list[str]:
    """The cells of a trial's row in the table."""
    values = [written(trial.values[key]) for key in keys]
    return [
        trial.name,
        *values,
        _loss(trial),
        f"{trial.step:,} of {trial.steps:,}",
        duration(trial.seconds),
        trial.state,
    ]


def print_results(results: TuningResults, out: Path) -> None:
    """Print the results, and the paths of recipe and report."""
    console = Console()
    keys = [each.key for each in results.ranges]
    shown_table = titled_table(f"{results.recipe}: trials by held-out loss")
    for number, name in enumerate(columns(keys)):
        shown_table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for trial in results.ranked:
        shown_table.add_row(*cells(trial, keys))
    console.print(shown_table)
    for key, value in results.winner.values.items():
        console.print(f"{key}: {value!r}, before {results.before[key]!r}", style="bold", soft_wrap=True)
    for line in [*answers(results), *results.cautions]:
        console.print(f"- {line}", soft_wrap=True)
    recipe = shlex.quote(str(out / "recipe.yaml"))
    console.print(
        f"\nrecipe: bakeoff pretrain {recipe} --corpus {shlex.quote(results.corpus)} --out RUN", soft_wrap=True
    )
    console.print(f"report: {out / 'report.html'}", soft_wrap=True)
