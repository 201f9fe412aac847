"""A page of charts as one HTML file that needs no network."""

import json
import string
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

import vl_convert

from bakeoff.comparison.charts import Figure


def html_page(title: str, body: str, specifications: Mapping[str, Any]) -> str:
    """The whole page.

    Args:
        title: of the window; plain text.
        body: HTML; its figures are those of `figure_element`.
        specifications: what is drawn in each of them, by the figure's name.
    """
    return string.Template(_asset("report.html")).substitute(
        title=escape(title),
        style=_asset("report.css"),
        body=body,
        specifications=_inside_script(json.dumps(specifications, ensure_ascii=False, separators=(",", ":"))),
        bundle=_inside_script(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
    )


def _asset(name: str) -> str:
    return files("bakeoff.comparison").joinpath(name).read_text(encoding="utf-8")


def _inside_script(text: str) -> str:
    """Text that cannot end the script element it stands in; the escape means the same in a string of JavaScript."""
    return text.replace("</script", "<\\/script").replace("<!--", "\\u003c!--")


def legend(styles: Mapping[str, tuple[str, list[int]]]) -> str:
    """Colour and dash of each line, once for all charts of the page."""
    dashes = ("solid", "dashed", "dotted", "dashed")
    marks = []
    for i, (label, (colour, _)) in enumerate(styles.items()):
        line = dashes[i // 8 % len(dashes)]
        marks.append(f'<li><span class="swatch" style="border-top: 3px {line} {colour}"></span>{escape(label)}</li>')
    return f'<ul class="legend">{"".join(marks)}</ul>'


def figure_element(figure: Figure) -> str:
    """The place that a chart is drawn in."""
    return (
        f'<figure><figcaption>{escape(figure.caption)}</figcaption><div class="chart" id="{figure.name}" role="img" '
        f'aria-label="{escape(f"{figure.title}, {figure.caption}")}"></div></figure>'
    )
