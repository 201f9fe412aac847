"""The section of a report on the factors of its grids: means of levels, effects, interactions and their charts."""

import itertools
from collections.abc import Iterator
from html import escape
from statistics import fmean
from typing import Any

import altair

from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.factors import FactorAnalysis
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.report.charts import Figure, axis_scale, colour_scale, dash_scale, styles
from bakeoff.report.elements import legend, note, panels, table

MOST_PAIRS = 3
"""The most pairs of factors of a grid that are drawn for a task."""


def factor_section(results: Results, figures: list[Figure]) -> str:
    """The section on factors; empty if the plan has no grid."""
    if not results.grids:
        return ""
    parts = [
        "<h2>What each factor does</h2>",
        note(
            "A level's mean is over all levels of the other factors. An interaction is how far the difference of two "
            "levels is another one at another level of a second factor; one of three factors, how far that is another "
            "one at another level of a third. The p-values are corrected for the number of differences, for that of "
            "interactions of two factors, and for that of three, of one grid on one task."
        ),
    ]
    for grid in results.grids:
        parts += [f"<h3>{escape(grid.name)}</h3>", _means(results, grid)]
        for number, (_, by) in enumerate(_pairs(grid), 1):
            drawn = [figure for figure in figures if figure.name.startswith(_prefix(results, grid, number))]
            lines = {f"{by} {level}": style for level, style in styles(grid.factors[by]).items()} if by else {}
            parts += [*([legend(lines)] if lines else []), *panels(drawn, titled=True)]
        for analysis in results.analyses:
            for factors in analysis.factors:
                if factors.grid == grid.name:
                    parts += _differences(results, analysis, factors)
    return "\n".join(parts)


def _prefix(results: Results, grid: GridFacts, pair: int) -> str:
    return f"factors-{results.grids.index(grid) + 1}-{pair}-"


def _pairs(grid: GridFacts) -> list[tuple[str, str | None]]:
    """The factors of each chart: one along it, and one with a line for each level, where there is another."""
    factors = sorted(grid.factors, key=lambda factor: -len(grid.factors[factor]))
    pairs: list[tuple[str, str | None]] = [*itertools.combinations(factors, 2)]
    return pairs[:MOST_PAIRS] or [(factors[0], None)]


def _means(results: Results, grid: GridFacts) -> str:
    """The mean of each level on each task on which the grid has scores."""
    columns = [
        (ShownMetric.of(results, analysis.task), factors)
        for analysis in results.analyses
        for factors in analysis.factors
        if factors.grid == grid.name
    ]
    rows = [
        [f"{factor} {level}", *(mean_at(measure, each, factor, level) for measure, each in columns)]
        for factor, levels in grid.factors.items()
        for level in levels
    ]
    return table(["Mean at each level", *(f"{each.task.name}, {each.heading}" for each, _ in columns)], rows)


def mean_at(measure: ShownMetric, factors: FactorAnalysis, factor: str, level: str) -> str:
    """The mean of a level over the other factors; a dash where cells are missing."""
    mean = factors.levels[factor].get(level)
    return "–" if mean is None else measure.value(mean)


def _differences(results: Results, analysis: Analysis, factors: FactorAnalysis) -> Iterator[str]:
    measure = ShownMetric.of(results, analysis.task)
    families = {
        "difference of two levels": factors.effects,
        "interaction": factors.interactions,
        "interaction of three factors": factors.triples,
    }
    for what, effects in families.items():
        if effects:
            yield tables.differences(measure, [each.difference for each in effects], f"{analysis.task}: {what}")


def factor_figures(results: Results) -> Iterator[Figure]:
    """The means over two factors, one chart for each pair of them and task; of a single factor, its levels."""
    for grid, analysis in itertools.product(results.grids, results.analyses):
        measure = ShownMetric.of(results, analysis.task)
        for number, (across, by) in enumerate(_pairs(grid), 1):
            if rows := _points(grid, analysis, measure, across, by):
                name = f"{_prefix(results, grid, number)}{results.analyses.index(analysis) + 1}"
                caption = f"{measure.heading}, by {across}" + (f"; lines: {by}" if by else "")
                yield Figure(name, analysis.task, caption, _chart(grid, measure, rows, across, by))


def _points(
    grid: GridFacts, analysis: Analysis, measure: ShownMetric, across: str, by: str | None
) -> list[dict[str, Any]]:
    """The means over all cells of a level of one factor and a level of another, with the interval of a single cell."""
    rows = []
    for level, line in itertools.product(grid.factors[across], grid.factors[by] if by else [""]):
        labels = [
            label
            for label, levels in grid.cells.items()
            if levels[across] == level and (by is None or levels[by] == line) and label in analysis.pretrained
        ]
        if not labels:
            continue
        spreads = [analysis.pretrained[label] for label in labels]
        mean = fmean(spread.mean for spread in spreads)
        alone = spreads[0].interval if len(spreads) == 1 else None
        shown, low, high = measure.drawn(mean, alone)
        rows.append({"x": level, "line": line, "y": shown, "low": low, "high": high})
    return rows


def _chart(grid: GridFacts, measure: ShownMetric, rows: list[dict[str, Any]], across: str, by: str | None) -> Any:
    """A line for each level of one factor over the levels of another, with an interval where a point is one recipe."""
    lines = grid.factors[by] if by else [""]
    style = styles(lines)
    place = [*grid.factors[across]]
    offset = altair.XOffset("line:N", sort=lines, scale=altair.Scale(paddingInner=1, paddingOuter=1))
    values = [row[key] for row in rows for key in ("y", "low", "high")]
    height = axis_scale(values, *measure.shown_bounds)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("x:N", sort=place, title=None, axis=altair.Axis(labelAngle=0, labelLimit=120)),
        xOffset=offset,
        y=altair.Y("y:Q", title=measure.heading, scale=height),
        color=altair.Color("line:N", title=None, sort=lines, scale=colour_scale(style)),
    )
    # Names of factors stand in no title: Vega makes expressions of those, which not every name survives.
    tooltip = ["x:N", *(["line:N"] if by else []), altair.Tooltip("y:Q", format=f".{measure.decimals}f")]
    return altair.layer(
        base.mark_line(strokeWidth=2.5).encode(
            strokeDash=altair.StrokeDash("line:N", title=None, sort=lines, scale=dash_scale(style))
        ),
        base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(y=altair.Y("low:Q", title=measure.heading), y2="high:Q"),
        base.mark_point(filled=True, size=52).encode(tooltip=tooltip),
    )
