"""A page of charts as one HTML file that needs no network, and in which no name or text can become a program."""

import base64
import hashlib
import json
import string
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

import vl_convert

from bakeoff.display.charts import Figure
from bakeoff.display.text import visible


def html_page(title: str, body: str, specifications: Mapping[str, Any]) -> str:
    """The whole page.

    Its policy lets the browser load nothing, and run and apply nothing but the scripts and the style of this function,
    which it knows by their hashes.

    Args:
        title: of the window; plain text.
        body: HTML; its figures are those of `figure_element`. It has no `style` attributes, which the policy forbids.
        specifications: what is drawn in each of them, by the figure's name.
    """
    style = _asset("page.css")
    scripts = {
        "bundle": _inside_script(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        "draw": _inside_script(_asset("page.js")),
    }
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_source(style)}; "
        f"script-src {' '.join(map(_source, scripts.values()))}"
    )
    return string.Template(_asset("page.html")).substitute(
        policy=policy,
        title=escape(visible(title)),
        style=style,
        body=visible(body, "\n\t"),
        specifications=embedded_json(specifications),
        **scripts,
    )


def embedded_json(values: Any) -> str:
    """JSON for a script element: no text in it can end that element, open a comment or stand for a line break."""
    text = json.dumps(values, separators=(",", ":"))  # ASCII, with escapes for all else
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("bakeoff.display").joinpath(name).read_text(encoding="utf-8")


def _inside_script(program: str) -> str:
    """A program of ours that cannot end the script element it stands in; the escape means the same in its strings."""
    return program.replace("</script", "<\\/script").replace("<!--", "\\u003c!--")


def _source(content: str) -> str:
    """What an element holds, as its page's policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def legend(styles: Mapping[str, tuple[str, list[int]]]) -> str:
    """Colour and dash of each line, once for all charts of the page."""
    marks = []
    for label, (colour, dash) in styles.items():
        line = f'<line x1="0" y1="2" x2="20" y2="2" stroke="{colour}" stroke-width="3"'
        dashes = "" if dash[1] == 0 else f' stroke-dasharray="{" ".join(map(str, dash))}"'
        swatch = f'<svg class="swatch" width="20" height="4" aria-hidden="true">{line}{dashes}></line></svg>'
        marks.append(f"<li>{swatch}{escape(label)}</li>")
    return f'<ul class="legend">{"".join(marks)}</ul>'


def figure_element(figure: Figure) -> str:
    """The place that a chart is drawn in."""
    return (
        f'<figure><figcaption>{escape(figure.caption)}</figcaption><div class="chart" id="{escape(figure.name)}" '
        f'role="img" aria-label="{escape(f"{figure.title}, {figure.caption}")}"></div></figure>'
    )
