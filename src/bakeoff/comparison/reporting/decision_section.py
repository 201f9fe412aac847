"""The section of a report on score against cost: a table and charts for each task, with the Pareto front."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import altair

from bakeoff.comparison.reporting.charts import colours
from bakeoff.comparison.reporting.decision import COSTS, Choice, Cost, cheapest, choices, on_front
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.tables import NOTHING
from bakeoff.comparison.results import Results
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, listed
from bakeoff.report.charts import GREY, Figure, axis_ends, axis_scale, colour_scale
from bakeoff.report.elements import frame, head, legend, note, panels

LOGARITHMIC = 8
"""The ratio of the greatest to the least cost from which on its axis is logarithmic."""

MOST_TASKS = 3
"""The most tasks with a chart for every cost; of more each has a chart for the first known cost, and its table."""


def decision_figures(results: Results) -> dict[str, list[Figure]]:
    """Charts of the score against costs that differ, by the name of each task with a choice."""
    figures: dict[str, list[Figure]] = {}
    known = with_a_choice(results)
    for number, analysis in enumerate(results.analyses, 1):
        if analysis.task not in known:
            continue
        measure, those = ShownMetric.of(results, analysis.task), known[analysis.task]
        differing = [cost for cost in COSTS if len({each.costs.get(cost.name) for each in those} - {None}) > 1]
        drawn = differing if len(results.analyses) <= MOST_TASKS else differing[:1]
        figures[analysis.task] = [
            Figure(
                f"pareto-{number}-{cost.name}",
                analysis.task,
                f"{measure.task.metric_title} against {cost.title.partition(',')[0]}",
                _chart(results, analysis, measure, those, cost),
            )
            for cost in drawn
        ]
    return figures


def with_a_choice(results: Results) -> dict[str, list[Choice]]:
    """The recipes and baselines to choose from, by the name of each task that has several."""
    known = {analysis.task: choices(results, analysis) for analysis in results.analyses}
    return {task: those for task, those in known.items() if len(those) > 1}


def decision_section(results: Results, figures: Mapping[str, Sequence[Figure]]) -> str:
    """The section, as HTML; empty where there is nothing to choose.

    Args:
        results: the results.
        figures: the charts of each task with a choice.
    """
    if not figures:
        return ""
    good = "cannot be told apart from the best"
    asked = {analysis.margin is not None for analysis in results.analyses if analysis.task in figures}
    if True in asked:
        within = "are shown to be within the plan's margin of the best"
        good = f"{within}, or, on tasks without a margin, {good}" if False in asked else within
    parts = [
        "<h2>Score against cost</h2>",
        note(
            f"{_measured(results)}Bold: on the Pareto front, so that no other has at least this score at no more of "
            "this cost (of what is measured, differences of up to 5 % are none). “Enough”: the recipe with the least "
            f"of this cost among those that {good}."
        ),
        note("In charts the line joins the recipes on the front.", of_charts=True),
        legend(colours(results)),
    ]
    for analysis in (each for each in results.analyses if each.task in figures):
        parts.append(f"<h3>{escape(analysis.task)}</h3>{_table(results, analysis)}")
        parts += panels(figures[analysis.task])
    return "\n".join(parts)


def _measured(results: Results) -> str:
    """How latencies were measured, in a sentence; empty where they were not."""
    if not results.latencies:
        return ""
    asked, threads = results.latency, results.machine.get("threads")
    texts = "one test text" if asked.batch == 1 else f"{counted(asked.batch, 'test text')} at once"
    rows = f", as rows of {asked.length:,} tokens" if asked.length else ""
    with_threads = f", with {counted(int(threads), 'thread')}" if threads else ""
    device = results.machine.get("device")
    on = f" on {'the CPU' if device == 'cpu' else device}" if device else ""
    return f"Latency: the median time from {texts}{rows} to the prediction{on}{with_threads}. "


def _table(results: Results, analysis: Analysis) -> str:
    """The table of one task: scores and costs, the best first."""
    measure, those = ShownMetric.of(results, analysis.task), choices(results, analysis)
    fronts = {cost.name: on_front(measure, those, cost.name) for cost in COSTS}
    enough = {cost.name: cheapest(measure, those, cost.name) for cost in COSTS}
    rows = []
    for choice in those:
        cells = f"<td>{measure.value(choice.score)}</td>"
        for cost in COSTS:
            value = choice.costs.get(cost.name)
            if value is None:
                cells += NOTHING
                continue
            text = cost.shown(value)
            mark = "<small>enough</small>" if enough[cost.name] is choice else ""
            cells += f"<td>{f'<b>{text}</b>' if choice.label in fronts[cost.name] else text}{mark}</td>"
        of = [cost.name for cost in COSTS if choice.label in fronts[cost.name]]
        cells += f'<td class="text">{listed(of) or "–"}</td>'
        kind = "" if choice.is_recipe else ' class="baseline"'
        rows.append(f'<tr{kind}><th scope="row">{escape(choice.label)}</th>{cells}</tr>')
    names = ["Recipe", measure.heading, *(cost.column for cost in COSTS)]
    return frame(head(names, last="on the front of"), rows)


def _ticks(low: float, high: float) -> list[float]:
    """The round numbers of a logarithmic axis: 1, 2 and 5 times the powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]


def _chart(results: Results, analysis: Analysis, measure: ShownMetric, those: Sequence[Choice], cost: Cost) -> Any:
    """A chart with a dot for each choice, its interval, and a line of steps along the Pareto front."""
    rows: list[dict[str, Any]] = []
    marked = on_front(measure, those, cost.name)
    for choice in (each for each in those if cost.name in each.costs):
        interval = analysis.pretrained[choice.label].interval if choice.is_recipe else None
        score, low, high = measure.drawn(choice.score, interval)
        rows.append(
            {
                "recipe": choice.label,
                "kind": "recipe" if choice.is_recipe else "baseline",
                "name": choice.label.partition(" with ")[0],
                "x": choice.costs[cost.name] / cost.unit,
                "y": score,
                "low": low,
                "high": high,
                "front": choice.label in marked,
            }
        )
    costs = [row["x"] for row in rows]
    logarithmic = max(costs) > LOGARITHMIC * min(costs) > 0
    across = [min(costs) / 1.3, 1.3 * max(costs)] if logarithmic else axis_ends([0.0, *costs], 0.0)
    upwards = axis_scale([row[end] for row in rows for end in ("low", "high")], *measure.shown_bounds)
    x = altair.X(
        "x:Q",
        title=cost.title,
        scale=altair.Scale(type="log" if logarithmic else "linear", domain=across, nice=False),
        axis=altair.Axis(format=",.4~r", **({"values": _ticks(*across)} if logarithmic else {"tickCount": 5})),
    )
    y = altair.Y("y:Q", title=measure.heading, scale=upwards)
    colour = altair.Color("recipe:N", title=None, scale=colour_scale(colours(results)))
    base = altair.Chart()
    recipes = base.transform_filter("datum.kind === 'recipe'").encode(x=x, color=colour)
    others = base.transform_filter("datum.kind === 'baseline'").encode(x=x, y=y)
    tooltip = [
        altair.Tooltip("recipe:N"),
        altair.Tooltip("x:Q", title=cost.title, format=".3~g"),
        altair.Tooltip("y:Q", title=measure.heading, format=f".{measure.decimals}f"),
    ]
    layers = [
        base.transform_filter("datum.front")
        .mark_line(interpolate="step-after", strokeWidth=1.2, strokeDash=[5, 4], color=GREY)
        .encode(x=x, y=y),
        recipes.mark_rule(strokeWidth=1.6, opacity=0.55).encode(
            y=altair.Y("low:Q", title=measure.heading), y2="high:Q"
        ),
        recipes.mark_point(filled=True, size=80, opacity=1).encode(y=y, tooltip=tooltip),
        others.mark_point(shape="diamond", filled=True, size=80, color=GREY, opacity=1).encode(tooltip=tooltip),
        others.mark_text(align="left", dx=8, dy=-8, fontSize=11).encode(text="name:N"),
    ]
    return altair.layer(*layers, data=altair.Data(values=rows))
