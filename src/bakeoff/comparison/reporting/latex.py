"""A comparison's tables in LaTeX: tables.tex, for a paper."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from bakeoff.comparison.reporting.plain_cells import Cell, PlainTable
from bakeoff.comparison.reporting.plain_tables import plain_tables
from bakeoff.comparison.results import Results
from bakeoff.display.text import visible
from bakeoff.display.wording import MINUS
from bakeoff.durable import write_atomically

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    MINUS: "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
}
"""The signs that are not themselves in a line of LaTeX, and how they are written."""

HEADING, NAME = 16, 36
"""The most characters in a line of a column's heading, and of a row's name, unless a word is longer."""

LONGEST = 400
"""The most characters of a cell; a verdict with what would decide it has some 200."""

FITTING = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""What makes a table smaller that is wider than the text, and leaves others as they are."""

OTHER_SCRIPTS = "\u0250"
"""The first character after those of Latin, which pdfLaTeX's fonts have; the signs above are written otherwise."""

_ANY = re.compile("|".join(map(re.escape, _SPECIAL)))


def write_latex(results: Results, path: Path) -> None:
    """Write the tables, each to be put in by itself, whole or not at all."""
    opening = [
        f"% {' '.join(visible(results.title).split())}, {results.created[:10]}",
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{booktabs,graphicx}",
    ]
    lines = [line for table in plain_tables(results) if _fits(table) for line in ("", *_lines(table))]
    if any(sign >= OTHER_SCRIPTS for line in lines for sign in line):
        opening.append(
            r"% Names in other scripts: with LuaLaTeX, \usepackage{fontspec} \setmainfont{FONT} in place of fontenc, "
            "where FONT has their letters"
        )
    write_atomically(path, "\n".join([*opening, *lines]) + "\n")


def _fits(table: PlainTable) -> bool:
    """Whether a table is one of numbers and words, and none of texts such as those of test rows."""
    return all(len(cell.whole) <= LONGEST for row in table.rows for cell in row[1:])


def latex(value: str) -> str:
    """A text in LaTeX, shown as it is; for a name in a script beyond Latin the document needs a font that has it."""
    return _ANY.sub(lambda match: _SPECIAL[match[0]], " ".join(visible(value).split()))


def _lines(table: PlainTable) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{latex(f'{table.title}. {table.caption}'.strip())}}}"
    yield rf"\label{{tab:{table.name}}}"
    yield FITTING
    sides = ["l" if at in table.words else "r" for at in range(1, len(table.head))]
    yield rf"\begin{{tabular}}{{l{''.join(sides)}}}"
    yield r"\toprule"
    first, *others = table.head
    heads = [_broken(first, HEADING, "l"), *map(_broken, others, [HEADING] * len(others), sides)]
    yield rf"{' & '.join(heads)} \\"
    yield r"\midrule"
    for row in table.rows:
        name, *cells = row
        yield rf"{_after_a_break(' & '.join([_broken(name.text, NAME, 'l'), *map(_cell, cells, sides)]))} \\"
    yield r"\bottomrule"
    yield r"\end{tabular}}"
    yield r"\end{table}"


def _broken(value: str, width: int, side: str) -> str:
    """A text in lines of some characters, aligned at the left (l) or the right (r)."""
    lines = textwrap.wrap(visible(value), width, break_long_words=False, break_on_hyphens=False)
    if len(lines) < 2:
        return latex(value)
    broken = r"\\".join(_after_a_break(latex(line)) for line in lines)
    return rf"\shortstack[{side}]{{{broken}}}"


def _after_a_break(line: str) -> str:
    """A line after a break, which would take an opening bracket for the space after it, and a star for its own."""
    return f"{{}}{line}" if line.startswith(("[", "*")) else line


def _cell(cell: Cell, side: str) -> str:
    if len(cell.whole) > NAME:
        return _broken(cell.whole, NAME, side)
    return cell.marked(latex, r"\textbf{{}}")
