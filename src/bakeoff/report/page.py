"""A page of charts as one HTML file that needs no network, and in which no name or text can become a program."""

import base64
import hashlib
import json
import string
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import vl_convert

from bakeoff.display.text import visible


def html_page(title: str, body: str, specifications: Mapping[str, Any]) -> str:
    """The whole page.

    Its policy lets the browser load nothing, and run and apply nothing but the scripts and the style of this function,
    which it knows by their hashes.

    Args:
        title: of the window; plain text.
        body: HTML, put together from `bakeoff.report.elements`. It has no `style` attributes, which the policy forbids.
        specifications: what is drawn in each of them, by the figure's name.
    """
    style = _asset("page.css")
    scripts = {
        "bundle": _bundle(),
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


@cache  # a second and a half of processor time, and the same for every page
def _bundle() -> str:
    """The drawing library, ready for a script element."""
    return _inside_script(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _asset(name: str) -> str:
    return files("bakeoff.report").joinpath(name).read_text(encoding="utf-8")


def _inside_script(program: str) -> str:
    """A program of ours that cannot end the script element it stands in; the escape means the same in its strings."""
    return program.replace("</script", "<\\/script").replace("<!--", "\\u003c!--")


def _source(content: str) -> str:
    """What an element holds, as its page's policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
