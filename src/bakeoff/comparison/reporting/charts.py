"""The charts of a comparison's report."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

import altair

from bakeoff.comparison.comparable import ComparableLosses, comparable_losses
from bakeoff.comparison.reporting.measures import ShownMetric, learned_baselines
from bakeoff.comparison.results import Results
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.report.charts import Figure, axis_scale, colour_scale, dash_scale, styles

MOST_POINTS = 300  # a curve; more than the pixels of a panel only makes the file larger

LONGEST = 300
"""Most pixels of a recipe's label beside a chart, as long as that of a cell of a grid."""


def colours(results: Results) -> dict[str, tuple[str, list[int]]]:
    """Colour and dash of each recipe, the same in every chart."""
    return styles([entry.label for entry in results.recipes])


def curves(results: Results) -> Iterator[Figure]:
    """Validation loss over tokens and over time, two figures for each group of comparable losses."""
    for number, panel in enumerate(comparable_losses(results), 1):
        seconds = max(run.seconds for entry in panel.entries for run in entry.runs)
        unit, length = ("hours", 3600) if seconds > 7200 else ("minutes", 60) if seconds > 120 else ("seconds", 1)
        for axis, title, scale in (("tokens", "tokens seen", 1), ("seconds", f"{unit} of training", length)):
            rows = list(_curve_rows(panel, axis, scale))
            caption = "over tokens" if axis == "tokens" else "over time"
            chart = _curve_chart(results, panel, rows, title, axis == "tokens")
            yield Figure(f"loss-{number}-{panel.objective}-{axis}", panel.title, caption, chart)


def _curve_rows(panel: ComparableLosses, axis: str, scale: float) -> Iterator[dict[str, Any]]:
    """The points of each seed's curve, and of the mean over seeds at every step that all seeds reached."""
    for entry in panel.entries:
        at_step: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for run in entry.runs:
            for point in run.curve[:: max(1, math.ceil(len(run.curve) / MOST_POINTS))]:
                value = panel.value(point)
                if value is not None and math.isfinite(value):
                    x = getattr(point, axis) / scale
                    at_step[point.step].append((x, value))
                    yield {"recipe": entry.label, "seed": f"seed {run.seed}", **_point(x, value)}
        for pairs in at_step.values():
            if len(pairs) == len(entry.runs):
                x, y = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
                yield {"recipe": entry.label, "seed": "mean", **_point(x, y)}


def _point(x: float, y: float) -> dict[str, float]:
    """A point rounded to more digits than a pixel shows."""
    return {"x": float(f"{x:.5g}"), "y": float(f"{y:.5g}")}


def _curve_chart(
    results: Results, panel: ComparableLosses, rows: list[dict[str, Any]], title: str, tokens: bool
) -> Any:
    """A chart with thin lines for seeds, a thick line for their mean, and dashed lines for guessing."""
    suffix = "replace(format(datum.value, '~s'), 'G', 'B')"  # a billion tokens is 1B to a reader, not 1G
    axis = altair.Axis(tickCount=6, labelExpr=suffix) if tokens else altair.Axis(tickCount=6)
    style = {label: style for label, style in colours(results).items() if any(label == r["recipe"] for r in rows)}
    references = list(_reference_lines(results, panel))
    losses = [row["y"] for row in rows] + [value for value, _ in references]
    height = axis_scale(losses or [0.0], 0.0)
    base = altair.Chart().encode(
        x=altair.X("x:Q", title=title, axis=axis, scale=altair.Scale(nice=False, zero=True)),
        y=altair.Y("y:Q", title=f"validation loss, {panel.unit}", scale=height),
        color=altair.Color("recipe:N", title=None, scale=colour_scale(style)),
        strokeDash=altair.StrokeDash("recipe:N", title=None, scale=dash_scale(style)),
    )
    seeds = (
        base.transform_filter("datum.seed !== 'mean'").mark_line(strokeWidth=1, opacity=0.45).encode(detail="seed:N")
    )
    mean = base.transform_filter("datum.seed === 'mean'")
    line = mean.mark_line(strokeWidth=2.5)
    # Points without ink, to hover over.
    hover = mean.mark_circle(size=90, opacity=0).encode(
        strokeDash=altair.value([1, 0]),
        tooltip=[
            altair.Tooltip("recipe:N"),
            altair.Tooltip("x:Q", title=title, format=".3s" if tokens else ".1f"),
            altair.Tooltip("y:Q", title=panel.unit, format=".3f"),
        ],
    )
    layers = [seeds, line, hover]
    for value, text in references:
        layers += _rule(value, text)
    # One copy of the rows for all layers: they are most of the report's size.
    return altair.layer(*layers, data=altair.Data(values=rows))


def _reference_lines(results: Results, panel: ComparableLosses) -> Iterator[tuple[float, str]]:
    """The losses, with their names, of guessing among classes and of models that count single tokens or trigrams."""
    if (trigram := panel.trigram(results)) is not None:
        yield trigram, "trigram"
    objective = OBJECTIVES[panel.objective]
    if objective.classes is not None:
        yield math.log(len(objective.classes)), "guessing"
    if not objective.bounded_by_frequencies:
        return
    for entry in panel.entries:
        for run in entry.runs:
            last = run.curve[-1] if run.curve else None
            if run.unigram_entropy and last and last.losses.get(panel.objective):
                drawn = panel.value(last)
                if drawn is not None:
                    # One corpus and tokenizer: the same factor turns every loss a token into bits a byte.
                    yield run.unigram_entropy * drawn / last.losses[panel.objective], "unigram entropy"
                    return


def trigram_note(results: Results) -> str:
    """What the line of the trigram model says; empty where no panel has it."""
    there = any(panel.trigram(results) is not None for panel in comparable_losses(results))
    return " The line “trigram” is what a model reaches that counts three tokens at a time." * there


def _rule(value: float, text: str) -> list[altair.Chart]:
    """A dashed line across the panel with its name."""
    data = altair.Chart(altair.Data(values=[{"y": value, "text": text}]))
    rule = data.mark_rule(strokeDash=[5, 4], strokeWidth=1.2).encode(y="y:Q")
    label = data.mark_text(align="right", baseline="top", dy=4, fontSize=11).encode(
        x=altair.value("width"), y="y:Q", text="text:N"
    )
    return [rule, label]


def dots(results: Results) -> Iterator[Figure]:
    """The scores of every seed, one figure for each task."""
    for analysis in results.analyses:
        measure = ShownMetric.of(results, analysis.task)
        chart = _dot_chart(results, analysis, measure)
        number = results.analyses.index(analysis) + 1
        yield Figure(f"scores-{number}", analysis.task, f"{measure.task.metric_title} on test by seed", chart)


def _dot_chart(results: Results, analysis: Analysis, measure: ShownMetric) -> Any:
    """A chart with a line for each recipe: filled dots pre-trained, open dots from scratch, a bar for the interval."""
    order, factor = measure.ranked(analysis), measure.factor
    rows: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for kind, spreads in (("pre-trained", analysis.pretrained), ("from scratch", analysis.scratch)):
        for label, spread in spreads.items():
            rows += [
                {"recipe": label, "kind": kind, "seed": f"seed {seed}", "x": factor * value}
                for seed, value in spread.seeds.items()
            ]
            mean, low, high = measure.drawn(spread.mean, spread.interval)
            means.append({"recipe": label, "kind": kind, "x": mean, "low": low, "high": high})
    style = colours(results)
    # What answers without a model may lie so far off that it would squeeze what is compared; the table has it.
    baselines: list[dict[str, Any]] = [
        {"x": factor * baseline.test[measure.task.metric], "text": baseline.name.partition(" with ")[0]}
        for baseline in learned_baselines(results, analysis.task)
    ]
    unit = measure.heading
    shared: dict[str, Any] = {
        "y": altair.Y(
            "recipe:N", sort=order, title=None, axis=altair.Axis(labelLimit=LONGEST, domain=False, ticks=False)
        ),
        "yOffset": altair.YOffset(
            "kind:N", sort=["pre-trained", "from scratch"], scale=altair.Scale(paddingOuter=0.35)
        ),
        "color": altair.Color("recipe:N", legend=None, scale=colour_scale(style)),
    }
    values = [row[key] for row in [*rows, *means, *baselines] for key in ("x", "low", "high") if key in row]
    width = axis_scale(values, *measure.shown_bounds)
    x = altair.X("x:Q", title=unit, scale=width, axis=altair.Axis(tickCount=7))
    base = altair.Chart(altair.Data(values=rows)).encode(x=x, **shared)
    summary = altair.Chart(altair.Data(values=means)).encode(**shared)
    tooltip = ["recipe:N", "kind:N", "seed:N", altair.Tooltip("x:Q", title=unit, format=f".{measure.decimals}f")]
    layers = [
        summary.mark_bar(height=11, opacity=0.18, cornerRadius=2).encode(x=altair.X("low:Q", title=unit), x2="high:Q"),
        summary.mark_tick(thickness=2, size=15).encode(x="x:Q"),
        base.transform_filter("datum.kind === 'pre-trained'")
        .mark_point(filled=True, size=52, opacity=0.9)
        .encode(tooltip=tooltip),
        base.transform_filter("datum.kind !== 'pre-trained'")
        .mark_point(filled=False, size=44, strokeWidth=1.6)
        .encode(tooltip=tooltip),
    ]
    if baselines:
        mark = altair.Chart(altair.Data(values=baselines)).encode(x="x:Q")
        layers.append(mark.mark_rule(strokeDash=[5, 4], strokeWidth=1.2))
        layers += _names_beside(baselines, [row["x"] for row in [*rows, *baselines]])
    return altair.layer(*layers)


def _names_beside(lines: list[dict[str, Any]], values: list[float]) -> Iterator[altair.Chart]:
    """The names of upright lines, right of them, but left of lines in the right half, so that no page cuts them."""
    middle = (min(values) + max(values)) / 2
    sides: tuple[tuple[Literal["left", "right"], int], ...] = (("left", 1), ("right", -1))
    for side, sign in sides:
        named = [line for line in lines if (line["x"] > middle) == (side == "right")]
        if not named:
            continue
        mark = altair.Chart(altair.Data(values=named)).encode(x="x:Q", y=altair.value(2), text="text:N")
        yield mark.mark_text(align=side, baseline="top", angle=0, dx=4 * sign, fontSize=11)
