"""Names and texts inside of Markdown (CommonMark with GitHub's tables), where they are text, not markup."""

import re
from html import escape

from bakeoff.display.text import visible

_MARKUP = re.compile(r"[\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_])|^(?:[+=-]|\d+(?=[.)]))")
"""What means something within a line, or begins a block; an underscore between a word's letters is one of them."""


def text(value: object) -> str:
    """A text as it is, in a paragraph, a heading or a cell of a table."""
    return _MARKUP.sub(_escaped, escape(visible(str(value)).strip(), quote=False))


def code(value: object) -> str:
    """A text as code within a line, outside of tables."""
    shown = visible(str(value))
    ticks = _ticks(shown, 1)
    space = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def block(value: object) -> str:
    """Lines of code."""
    shown = visible(str(value), "\n")
    ticks = _ticks(shown, 3)
    return f"{ticks}\n{shown}\n{ticks}"


def _ticks(shown: str, least: int) -> str:
    """More ticks than the text has in a row."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", shown)), default=0))


def _escaped(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"
