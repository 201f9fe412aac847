"""Charts as Vega-Lite specifications: their colours, and their look on a page and in a file."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import altair

from bakeoff.display.text import visible

GREY = "#8b8f98"
"""The colour of what stands beside the labels of a chart."""

PALETTE = (
    *("#0f7fc4", "#d9600a", "#0a9e75", "#c76ba0", "#e0a000", "#4fb3e8"),
    *("#8a7f00", "#8f6fd6", "#c2475f", "#6b7f99", "#12a5a0", "#a0703f"),
)
"""Colours of lines, the first seven after Okabe and Ito (2008), distinct for colour-blind readers; all are legible on
white and near black."""

DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3])
"""Dashes of lines: after the last colour of the palette, colours repeat with the next dash."""


class Figure(NamedTuple):
    """A chart with its texts, for a page or a file."""

    name: str
    """The name of the chart's file without its ending, and of its element on a page."""
    title: str
    """The heading; figures side by side share it."""
    caption: str
    """What the chart shows."""
    chart: Any
    """The Altair chart, without legend and colours of text."""


def styles(labels: Sequence[str]) -> dict[str, tuple[str, list[int]]]:
    """Colour and dash of the line of each label."""
    return {
        label: (PALETTE[i % len(PALETTE)], DASHES[i // len(PALETTE) % len(DASHES)]) for i, label in enumerate(labels)
    }


def colour_scale(style_of: Mapping[str, tuple[str, list[int]]]) -> altair.Scale:
    """The colour scale for the lines of `styles`."""
    return altair.Scale(domain=list(style_of), range=[colour for colour, _ in style_of.values()])


def dash_scale(style_of: Mapping[str, tuple[str, list[int]]]) -> altair.Scale:
    """The dash scale for the lines of `styles`."""
    return altair.Scale(domain=list(style_of), range=[dash for _, dash in style_of.values()])


def axis_ends(
    values: Sequence[float], lowest: float = -math.inf, highest: float = math.inf, ticks: int = 6
) -> list[float]:
    """The two ends of a linear axis: round numbers around all values, but no number that a value could not be.

    Args:
        values: the values, one at least.
        lowest: the lowest value that there can be, such as 0 for a time.
        highest: the highest one.
        ticks: about how many steps of a round size the axis has.
    """
    low, high = min(values), max(values)
    span = high - low or abs(high) / 10 or 1.0
    size = 10.0 ** math.floor(math.log10(span / ticks))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor * ticks >= span)
    margin = span / 25
    begin, end = (math.floor((low - margin) / step) * step, math.ceil((high + margin) / step) * step)
    return [max(begin, min(low, lowest)), min(end, max(high, highest))]


def axis_scale(values: Sequence[float], lowest: float = -math.inf, highest: float = math.inf) -> altair.Scale:
    """The scale of a linear axis between its `axis_ends`."""
    return altair.Scale(domain=axis_ends(values, lowest, highest), nice=False, zero=False)


def on_page(
    figures: Sequence[Figure], height: int | Callable[[Figure], int], *, legend: bool = False
) -> dict[str, dict[str, Any]]:
    """The specifications of a page's figures by name, in the width of their elements and the page's text colour.

    Args:
        figures: the figures.
        height: the height of each figure in pixels, or a function to it.
        legend: whether each figure has its own legend; False: the page has one for all.
    """
    return {
        figure.name: specification(
            figure.chart,
            width="container",
            height=height(figure) if callable(height) else height,
            ink="currentColor",
            legend=legend,
        )
        for figure in figures
    }


def specification(chart: Any, *, width: int | str, height: int, ink: str, legend: bool) -> dict[str, Any]:
    """A chart as plain data; `width` in pixels or "container" for that of its element, `ink` the colour of texts."""
    faint = {"domainColor": ink, "tickColor": ink, "gridColor": ink, "gridOpacity": 0.12, "domainOpacity": 0.4}
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    font = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
    config = {
        "font": font,
        "background": "transparent" if ink == "currentColor" else "white",
        "view": {"stroke": None},
        "axis": {**faint, **text, "tickOpacity": 0.4, "titlePadding": 8},
        "rule": {"color": ink, "opacity": 0.7},
        "text": {"color": ink, "font": font},
        "legend": {**text, "orient": "bottom", "columns": 3, "labelLimit": 220, "symbolType": "stroke"}
        | {"symbolOpacity": 1, "symbolStrokeWidth": 2.5, "symbolSize": 300}
        if legend
        else {"disable": True},
    }
    sized = chart.properties(
        width=width, height=height, autosize=altair.AutoSizeParams(type="fit-x", contains="padding")
    )
    spec = sized.to_dict(validate=False)  # which takes most of a report's time; tests validate charts of each kind
    spec["config"] = config
    spec.pop("$schema", None)  # an address in the page would look like a resource to load
    return cast(dict[str, Any], _visible(spec))


def _visible(node: Any) -> Any:
    """The data with control characters as escapes: Vega compiles names into scripts, which a line end would break."""
    if isinstance(node, Mapping):
        return {key: _visible(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_visible(value) for value in node]
    return visible(node) if isinstance(node, str) else node
