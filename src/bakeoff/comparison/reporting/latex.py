"""A comparison's tables in LaTeX: tables.tex, for a paper."""

import re
from collections.abc import Iterator
from pathlib import Path

from bakeoff.comparison.reporting.plain_tables import Cell, PlainTable, plain_tables
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

_ANY = re.compile("|".join(map(re.escape, _SPECIAL)))


def write_latex(results: Results, path: Path) -> None:
    """Write the tables, each to be put in by itself, whole or not at all."""
    opening = [
        f"% {' '.join(visible(results.title).split())}, {results.created[:10]}",
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{booktabs}",
    ]
    lines = [line for table in plain_tables(results) for line in ("", *_lines(table))]
    write_atomically(path, "\n".join([*opening, *lines]) + "\n")


def latex(value: str) -> str:
    """A text in LaTeX, shown as it is; for a name in a script beyond Latin the document needs a font that has it."""
    return _ANY.sub(lambda match: _SPECIAL[match[0]], " ".join(visible(value).split()))


def _lines(table: PlainTable) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{latex(f'{table.title}. {table.caption}')}}}"
    yield rf"\label{{tab:{table.name}}}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}"
    yield r"\toprule"
    yield rf"{' & '.join(map(latex, table.head))} \\"
    yield r"\midrule"
    for row in table.rows:
        cells = " & ".join(map(_cell, row))
        # What began with these would be taken for the space after the row before, or for its star.
        yield rf"{'{}' * cells.startswith(('[', '*'))}{cells} \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _cell(cell: Cell) -> str:
    shown = latex(cell.text)
    return rf"\textbf{{{shown}}}" if cell.strong and shown else shown
