"""Pages of charts as single HTML files that need no network, and in which no name or text can become a script."""

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
    """A page as HTML.

    Its Content-Security-Policy lets the browser load nothing, and allows only the scripts and the style of this
    function, by their hashes.

    Args:
        title: the title of the window, as plain text.
        body: HTML from the functions of `bakeoff.report.elements`; `style` attributes are forbidden by the policy.
        specifications: the specification of each chart, by the figure's name.
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
    """JSON for a script element, escaped so that no text in it can end the element, open a comment or break a line."""
    text = json.dumps(values, separators=(",", ":"))  # ASCII with escapes
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache  # takes 1.5 s of processor time
def _bundle() -> str:
    """The drawing library, ready for a script element."""
    return _inside_script(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _asset(name: str) -> str:
    return files("bakeoff.report").joinpath(name).read_text(encoding="utf-8")


def _inside_script(program: str) -> str:
    """A script, escaped so that it cannot end its element; in its strings the escapes are equivalent."""
    return program.replace("</script", "<\\/script").replace("<!--", "\\u003c!--")


def _source(content: str) -> str:
    """The source expression of a script's or style's content for the policy: its SHA-256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
