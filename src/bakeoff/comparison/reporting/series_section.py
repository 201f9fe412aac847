"""The section of a report on curves over labelled rows: a chart, and where recipes cross."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import altair

from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.charts import colours
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Results
from bakeoff.comparison.series import Series, SeriesPoint
from bakeoff.report.charts import Figure, colour_scale
from bakeoff.report.elements import figure_element, legend, note

LINES = {"pre-trained": [1, 0], "from scratch": [5, 4]}
"""The dash of the line of each initialisation."""

GREY = "#8b8f98"
"""The colour of the line of what learns without a neural network."""


def series_section(results: Results, figures: Sequence[Figure]) -> str:
    """The section of curves over labels; empty if no task has several numbers of rows."""
    if not results.series:
        return ""
    style = colours(results)
    parts = [
        "<h2>How scores grow with labels</h2>",
        note(
            "The rows of a smaller number are among those of a larger one, of each class its share. Line: mean over "
            "seeds, pre-trained; dashed: from scratch; bar: the 95 % interval; grey: what learns without a neural "
            "network. The p-values are corrected for all pairs and all numbers of rows together."
        ),
        legend({label: (colour, [1, 0]) for label, (colour, _) in style.items()}),
    ]
    for series, figure in zip(results.series, figures, strict=True):
        parts += [f"<h3>{escape(series.task)}</h3>", figure_element(figure)]
        pairs = [
            pair.model_copy(update={"first": f"{point.name}: {pair.first}"})
            for point in series.points
            for pair in point.pairs
        ]
        if pairs:
            measure = ShownMetric.of(results, series.points[0].task)
            parts.append(tables.differences(measure, pairs, "Difference of pre-trained recipes"))
    return "\n".join(parts)


def series_figures(results: Results) -> Iterator[Figure]:
    """The scores over rows, one figure for each curve."""
    for number, series in enumerate(results.series, 1):
        measure = ShownMetric.of(results, series.points[0].task)
        caption = f"{measure.heading} on test, by rows to learn from"
        yield Figure(f"rows-{number}", series.task, caption, _chart(results, series, measure))


def _rows(measure: ShownMetric, point: SeriesPoint) -> Iterator[dict[str, Any]]:
    for kind, spreads in (("pre-trained", point.pretrained), ("from scratch", point.scratch)):
        for label, spread in spreads.items():
            low, high = measure.cut(spread.interval) if spread.interval else (spread.mean, spread.mean)
            ends = {"y": spread.mean, "low": low, "high": high}
            shown = {key: measure.factor * value for key, value in ends.items()}
            yield {"recipe": label, "kind": kind, "line": f"{kind} {label}", "x": point.at, **shown}


def _baselines(results: Results, series: Series, measure: ShownMetric) -> list[dict[str, Any]]:
    """The best of what learns without a neural network, at each point."""
    rows = []
    for point in series.points:
        learned = [each for each in results.baselines if each.task == point.task and each.kind == "learned"]
        if learned:
            best = measure.strongest(learned)[0]
            rows.append({"x": point.at, "y": measure.factor * best.test[measure.task.metric], "text": best.name})
    return rows


def _chart(results: Results, series: Series, measure: ShownMetric) -> Any:
    """A line for each recipe and initialisation over the logarithm of the rows."""
    style = colours(results)
    places = [point.at for point in series.points]
    axis = altair.Axis(values=places, format=",d", grid=False)
    logarithm = altair.Scale(type="log", nice=False, padding=24)
    rows = [row for point in series.points for row in _rows(measure, point)]
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("x:Q", title="rows to learn from", axis=axis, scale=logarithm),
        y=altair.Y("y:Q", title=measure.heading, scale=altair.Scale(zero=False, padding=12)),
        color=altair.Color("recipe:N", title=None, scale=colour_scale(style)),
        detail="line:N",
    )
    dashes = altair.Scale(domain=[*LINES], range=[*LINES.values()])
    tooltip = ["recipe:N", "kind:N", altair.Tooltip("x:Q", title="rows", format=",d")]
    tooltip += [altair.Tooltip("y:Q", title=measure.heading, format=f".{measure.decimals}f")]
    layers = [
        base.mark_line(strokeWidth=2.5).encode(strokeDash=altair.StrokeDash("kind:N", legend=None, scale=dashes)),
        base.mark_rule(strokeWidth=1.5, opacity=0.4).encode(y=altair.Y("low:Q", title=measure.heading), y2="high:Q"),
        base.mark_point(filled=True, size=46).encode(tooltip=tooltip),
    ]
    if simple := _baselines(results, series, measure):
        mark = altair.Chart(altair.Data(values=simple)).encode(x="x:Q", y="y:Q")
        layers.append(
            mark.mark_line(strokeWidth=2, color="#8b8f98", strokeDash=[2, 3]).encode(tooltip=["text:N", "y:Q"])
        )
    return altair.layer(*layers)
