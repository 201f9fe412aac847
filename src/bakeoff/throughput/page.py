"""Measured speeds as a page of charts and tables: one HTML file that needs no network."""

from html import escape
from pathlib import Path
from typing import Any

import altair

from bakeoff.display.charts import Figure, specification, styles
from bakeoff.display.page import figure_element, html_page, legend
from bakeoff.durable import write_atomically
from bakeoff.throughput.results import Quantity, SpeedResults, shown


def write_page(results: SpeedResults, path: Path) -> None:
    """Write the page."""
    figures = [_figure(results, quantity) for quantity in shown(results)]
    drawn = {
        figure.name: specification(figure.chart, width="container", height=300, ink="currentColor", legend=False)
        for figure in figures
    }
    machine = results.environment
    threads = f"{machine['threads']} thread" + ("s" if machine["threads"] != 1 else "")
    about = f"{machine['device_name']}, {threads}, {machine['precision']} · {results.created[:10]}"
    body = [
        f'<p class="eyebrow">{escape(about)}</p>',
        "<h1>Speed against length</h1>",
        f'<p class="note">{results.batch_tokens:,} tokens a step, full rows of random text; medians. Both axes are '
        "logarithmic.</p>",
        legend(styles(results.recipes)),
        '<div class="panels">',
        *map(figure_element, figures),
        "</div>",
        *(_table(results, quantity) for quantity in shown(results)),
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in results.remarks())}</ul>",
    ]
    write_atomically(path, html_page("Speed against length", "\n".join(body), drawn))


def _figure(results: SpeedResults, quantity: Quantity) -> Figure:
    """Both axes logarithmic, a line for each recipe."""
    rows = [
        {"recipe": each.recipe, "length": each.length, "y": float(f"{value * quantity.scale:.5g}")}
        for each in results.measurements
        if (value := getattr(each, quantity.field)) is not None
    ]
    found = styles(results.recipes)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X(
            "length:Q",
            title="tokens of a row",
            scale=altair.Scale(type="log", base=2, nice=False, padding=8),
            axis=altair.Axis(values=results.lengths, format="d"),
        ),
        y=altair.Y("y:Q", title=quantity.title, scale=altair.Scale(type="log", nice=False, padding=12)),
        color=altair.Color(
            "recipe:N", scale=altair.Scale(domain=list(found), range=[colour for colour, _ in found.values()])
        ),
        tooltip=["recipe:N", "length:Q", altair.Tooltip("y:Q", title=quantity.title, format=",.4~g")],
    )
    dashed = altair.StrokeDash(
        "recipe:N", scale=altair.Scale(domain=list(found), range=[dash for _, dash in found.values()])
    )
    chart: Any = altair.layer(
        base.mark_line(strokeWidth=2).encode(strokeDash=dashed), base.mark_point(filled=True, size=40, opacity=1)
    )
    return Figure(quantity.field, quantity.title, quantity.title, chart)


def _table(results: SpeedResults, quantity: Quantity) -> str:
    head = "".join(f"<th>{length:,}</th>" for length in results.lengths)
    rows = [
        f"<tr><th>{escape(name)}</th>"
        + "".join(f"<td>{quantity.of(results.at(name, length))}</td>" for length in results.lengths)
        + "</tr>"
        for name in results.recipes
    ]
    return (
        f'<h2>{escape(quantity.title)}</h2><div class="scroll"><table><thead><tr><th>recipe</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
