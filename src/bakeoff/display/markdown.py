"""Names and texts in Markdown (CommonMark with GitHub's tables), escaped so that they are not markup."""

import re
from html import escape

from bakeoff.display.text import visible

_INLINE = r"[\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_])"
_MARKUP = re.compile(rf"{_INLINE}|^(?:[+=-]|\d+(?=[.)]))")
"""Characters with a meaning in a line or at the beginning of a block; an underscore inside a word has none."""
_IN_A_CELL = re.compile(_INLINE)
CODE = re.compile(r"(?<![^\s(\[,:])`([^`\n]+)`")
"""Text between backticks, the first of which begins a word; those of data between quotes, such as '`', are no code."""


def text(value: object) -> str:
    """A text for a paragraph, a heading or a cell of a table, shown as it is."""
    return _MARKUP.sub(_escaped, escape(visible(str(value)).strip(), quote=False))


def cell(value: object) -> str:
    """A text for a cell of a table, where no block begins: numbers stay as they are."""
    return _IN_A_CELL.sub(_escaped, escape(visible(str(value)).strip(), quote=False))


def sentence(value: str) -> str:
    """A sentence for a paragraph or the item of a list; text between backticks becomes code."""
    parts = CODE.split(visible(value).strip())  # texts, with code between every two
    shown = [
        code(each) if index % 2 else _IN_A_CELL.sub(_escaped, escape(visible(each), quote=False))
        for index, each in enumerate(parts)
    ]
    if parts[0]:
        shown[0] = _MARKUP.sub(_escaped, escape(visible(parts[0]), quote=False))
    return "".join(shown)


def code(value: object) -> str:
    """A text as inline code, outside of tables."""
    shown = visible(str(value))
    ticks = _ticks(shown, 1)
    space = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def block(value: object) -> str:
    """A text as a block of code."""
    shown = visible(str(value), "\n")
    ticks = _ticks(shown, 3)
    return f"{ticks}\n{shown}\n{ticks}"


def _ticks(shown: str, least: int) -> str:
    """Backticks for a fence: more than any run of them in the text, and at least `least`."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", shown)), default=0))


def _escaped(match: re.Match[str]) -> str:
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"
