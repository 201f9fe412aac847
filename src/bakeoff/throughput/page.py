"""The page of measured speeds: charts and tables in one HTML file that needs no network."""

from html import escape
from pathlib import Path
from typing import Any

import altair

from bakeoff.durable import write_atomically
from bakeoff.report.charts import Figure, colour_scale, dash_scale, on_page, styles
from bakeoff.report.elements import items, legend, note, opening, panels, table
from bakeoff.report.page import html_page
from bakeoff.throughput.results import Quantity, SpeedResults, shown

TITLE = "Speed against length"


def write_page(results: SpeedResults, path: Path) -> None:
    """Write the page, with a chart and a table for each measured quantity."""
    figures = [_figure(results, quantity) for quantity in shown(results)]
    machine = results.environment
    threads = f"{machine['threads']} thread" + ("s" if machine["threads"] != 1 else "")
    about = f"{machine['device_name']}, {threads}, {machine['precision']} · {results.created[:10]}"
    body = [
        *opening(about, TITLE),
        note(f"{results.batch_tokens:,} tokens a step, full rows of random text; medians. Both axes are logarithmic."),
        legend(styles(results.recipes)),
        *panels(figures),
        *(_section(results, quantity) for quantity in shown(results)),
        f"<ul>{items(results.remarks())}</ul>",
    ]
    write_atomically(path, html_page(TITLE, "\n".join(body), on_page(figures, 300)))


def _figure(results: SpeedResults, quantity: Quantity) -> Figure:
    """The chart of a quantity: a line for each recipe, both axes logarithmic."""
    rows = [
        {"recipe": each.recipe, "length": each.length, "y": float(f"{value * quantity.scale:.5g}")}
        for each in results.measurements
        if (value := getattr(each, quantity.field)) is not None
    ]
    style_of = styles(results.recipes)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X(
            "length:Q",
            title="tokens of a row",
            scale=altair.Scale(type="log", base=2, nice=False, padding=8),
            axis=altair.Axis(values=results.lengths, format="d"),
        ),
        y=altair.Y("y:Q", title=quantity.title, scale=altair.Scale(type="log", nice=False, padding=12)),
        color=altair.Color("recipe:N", scale=colour_scale(style_of)),
        tooltip=["recipe:N", "length:Q", altair.Tooltip("y:Q", title=quantity.title, format=",.4~g")],
    )
    dashed = altair.StrokeDash("recipe:N", scale=dash_scale(style_of))
    chart: Any = altair.layer(
        base.mark_line(strokeWidth=2).encode(strokeDash=dashed), base.mark_point(filled=True, size=40, opacity=1)
    )
    return Figure(quantity.field, quantity.title, quantity.title, chart)


def _section(results: SpeedResults, quantity: Quantity) -> str:
    rows = [[name, *(quantity.of(results.at(name, length)) for length in results.lengths)] for name in results.recipes]
    names = ["recipe", *(f"{length:,}" for length in results.lengths)]
    return f"<h2>{escape(quantity.title)}</h2>{table(names, rows)}"
