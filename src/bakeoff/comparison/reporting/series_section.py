"""The sections of a report on curves over labelled rows and over budgets: a chart, and where recipes cross."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import altair

from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.charts import colours
from bakeoff.comparison.reporting.measures import ShownMetric, learned_baselines
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.series import Series, SeriesPoint
from bakeoff.report.charts import GREY, Figure, axis_scale, colour_scale
from bakeoff.report.elements import figure_element, legend, note

LINES = {"pre-trained": [1, 0], "from scratch": [5, 4]}
"""The dash of the line of each initialisation."""

HEADINGS = {"rows": "How scores grow with labels", "budget": "From which budget on pre-training pays"}
"""The heading of the section of each scale."""
ABOUT = {
    "rows": "The rows of a smaller number are among those of a larger one, of each class its share.",
    "budget": (
        "Below 100 % a pre-training goes on from a copy of the whole one, while its learning rate falls to zero in the "
        "last fifth of its steps, as if the budget ended there: its cost is that fifth alone, where without the whole "
        "one it would be its share. At 100 % the recipe's own schedule has been followed."
    ),
}
"""What a reader has to know of the points of each scale."""
AXES = {"rows": "rows to learn from", "budget": "budget of pre-training, %"}
"""The title of the axis of each scale."""


def series_section(results: Results, figures: Sequence[Figure | None]) -> str:
    """The sections of curves; empty if no task has several numbers of rows and the plan no checkpoints.

    Args:
        results: the results.
        figures: the chart of each curve; None: without one.
    """
    parts = []
    style = colours(results)
    for scale, heading in HEADINGS.items():
        those = [pair for pair in zip(results.series, figures, strict=True) if pair[0].scale == scale]
        if not those:
            continue
        parts += [
            f"<h2>{heading}</h2>",
            note(
                f"{ABOUT[scale]} The p-values are corrected for all pairs and all points together, so that they are "
                "larger than those of a single point in its own table."
            ),
            note(
                "Line: mean over seeds, pre-trained; dashed: from scratch; bar: the 95 % interval; grey: what learns "
                "without a neural network.",
                of_charts=True,
            ),
            legend({label: (colour, [1, 0]) for label, (colour, _) in style.items()}),
        ]
        for series, figure in those:
            parts += [f"<h3>{escape(series.task)}</h3>", "" if figure is None else figure_element(figure)]
            parts += _differences(results, series)
    return "\n".join(parts)


def _differences(results: Results, series: Series) -> Iterator[str]:
    """The table of the differences at all points."""
    pairs = [
        pair.model_copy(update={"first": f"{point.name}: {pair.first}"})
        for point in series.points
        for pair in point.pairs
    ]
    if pairs:
        measure = ShownMetric.of(results, series.points[0].task)
        yield tables.differences(measure, pairs, "Difference of pre-trained recipes")


def series_figures(results: Results) -> Iterator[Figure]:
    """The scores over rows or budgets, one figure for each curve."""
    for number, series in enumerate(results.series, 1):
        measure = ShownMetric.of(results, series.points[0].task)
        caption = f"{measure.heading} on test, by {AXES[series.scale]}"
        yield Figure(f"{series.scale}-{number}", series.task, caption, _chart(results, series, measure))


def _rows(measure: ShownMetric, point: SeriesPoint) -> Iterator[dict[str, Any]]:
    for kind, spreads in (("pre-trained", point.pretrained), ("from scratch", point.scratch)):
        for label, spread in spreads.items():
            mean, low, high = measure.drawn(spread.mean, spread.interval)
            line = {"recipe": label, "kind": kind, "line": f"{kind} {label}"}
            yield {**line, "x": point.at, "y": mean, "low": low, "high": high}


def _baselines(results: Results, series: Series, measure: ShownMetric) -> list[dict[str, Any]]:
    """The best of what learns without a neural network, at each point."""
    return [
        {"x": point.at, "y": measure.factor * best.test[measure.task.metric], "text": best.name}
        for point in series.points
        for best in measure.strongest(learned_baselines(results, point.task))[:1]
    ]


def _chart(results: Results, series: Series, measure: ShownMetric) -> Any:
    """A line for each recipe and initialisation over the logarithm of the rows."""
    style = colours(results)
    places = [point.at for point in series.points]
    axis = altair.Axis(values=places, format=",g" if series.scale == "budget" else ",d", grid=False)
    logarithm = altair.Scale(type="log", nice=False, padding=24)
    rows = [row for point in series.points for row in _rows(measure, point)]
    simple = _baselines(results, series, measure)
    values = [row[key] for row in [*rows, *simple] for key in ("y", "low", "high") if key in row]
    height = axis_scale(values, *measure.shown_bounds)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("x:Q", title=AXES[series.scale], axis=axis, scale=logarithm),
        y=altair.Y("y:Q", title=measure.heading, scale=height),
        color=altair.Color("recipe:N", title=None, scale=colour_scale(style)),
        detail="line:N",
    )
    dashes = altair.Scale(domain=[*LINES], range=[*LINES.values()])
    tooltip = ["recipe:N", "kind:N", altair.Tooltip("x:Q", title=AXES[series.scale], format=",g")]
    tooltip += [altair.Tooltip("y:Q", title=measure.heading, format=f".{measure.decimals}f")]
    layers = [
        base.mark_line(strokeWidth=2.5).encode(strokeDash=altair.StrokeDash("kind:N", legend=None, scale=dashes)),
        base.mark_rule(strokeWidth=1.5, opacity=0.4).encode(y=altair.Y("low:Q", title=measure.heading), y2="high:Q"),
        base.mark_point(filled=True, size=46).encode(tooltip=tooltip),
    ]
    if simple:
        mark = altair.Chart(altair.Data(values=simple)).encode(x="x:Q", y="y:Q")
        layers.append(mark.mark_line(strokeWidth=2, color=GREY, strokeDash=[2, 3]).encode(tooltip=["text:N", "y:Q"]))
    return altair.layer(*layers)
