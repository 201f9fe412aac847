"""Elements of pages in HTML: lists, tables, notes, and charts side by side; plain texts are escaped here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from bakeoff.display.markdown import CODE
from bakeoff.report.charts import Figure

RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+(?: +[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+)*"
)
"""Words of a script that is written from right to left."""

LONG = 110
"""The most characters of a title in the largest letters."""


def sentence(text: str) -> str:
    """A text of ours as HTML, in which names that are written from right to left do not turn what stands between."""
    return RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", escape(text))


def items(texts: Iterable[str]) -> str:
    """The items of a list; text between backticks becomes code."""
    set_as_code = (CODE.sub(r"<code>\1</code>", sentence(text)) for text in texts)
    return "".join(f"<li>{text}</li>" for text in set_as_code)


def note(text: str, *, of_charts: bool = False) -> str:
    """A paragraph of remarks in small type; `of_charts`: on what the charts below it show."""
    return f'<p class="note{" of-charts" * of_charts}">{escape(text, quote=False)}</p>'


def opening(
    about: str, title: str, answers: Sequence[str] = (), cautions: Sequence[str] = (), further: Sequence[str] = ()
) -> list[str]:
    """The head of a page.

    Args:
        about: what was done; it stands in small letters above the title.
        title: the heading of the page.
        answers: the results, one sentence each.
        cautions: what readers must know before they rely on the results, one sentence each.
        further: more to know, folded until a click.
    """
    long = ' class="long"' * (len(title) > LONG)
    parts = [f'<p class="eyebrow">{escape(about)}</p>', f"<h1{long}>{sentence(title)}</h1>"]
    if answers:
        parts.append(f'<ul class="answer">{items(answers)}</ul>')
    if cautions:
        more = ""
        if further:
            more = f"<details><summary>{len(further)} more</summary><ul>{items(further)}</ul></details>"
        parts.append(
            f'<section class="cautions"><h2>Before you rely on this</h2><ul>{items(cautions)}</ul>{more}</section>'
        )
    return parts


def folded(summary: str, text: str) -> str:
    """A text of many lines, folded until a click on its summary."""
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"


def frame(head: str, rows: Iterable[str]) -> str:
    """A table that scrolls inside its frame in a narrow window; head and rows are HTML."""
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def head(names: Sequence[str], *, text: int = 1, last: str = "") -> str:
    """A row of column names; the first `text` columns hold text, the others numbers, and one after them text again."""
    named = [(name, i < text) for i, name in enumerate(names)] + ([(last, True)] if last else [])
    cells = (f'<th scope="col"{" class=text" * is_text}>{escape(name)}</th>' for name, is_text in named)
    return f"<tr>{''.join(cells)}</tr>"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, text: int = 1) -> str:
    """A table of plain texts, with the first cell of a row as its heading.

    Args:
        names: names of the columns.
        rows: rows with a cell for each column.
        text: number of first columns that hold text; the others are aligned as numbers.
    """
    made = (
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td{' class=text' * (i < text)}>{escape(cell)}</td>" for i, cell in enumerate(cells, 1))
        + "</tr>"
        for first, *cells in rows
    )
    return frame(head(names, text=text), made)


def legend(styles: Mapping[str, tuple[str, list[int]]]) -> str:
    """The legend of a page: colour and dash of each line, once for all charts."""
    marks = []
    for label, (colour, dash) in styles.items():
        line = f'<line x1="0" y1="2" x2="20" y2="2" stroke="{colour}" stroke-width="3"'
        dashes = "" if dash[1] == 0 else f' stroke-dasharray="{" ".join(map(str, dash))}"'
        swatch = f'<svg class="swatch" width="20" height="4" aria-hidden="true">{line}{dashes}></line></svg>'
        marks.append(f"<li>{swatch}{escape(label)}</li>")
    return f'<ul class="legend">{"".join(marks)}</ul>'


def panels(figures: Sequence[Figure], *, titled: bool = False) -> list[str]:
    """The elements of charts, side by side, each below its heading if `titled`."""
    drawn = [
        f"<div><h3>{escape(figure.title)}</h3>{figure_element(figure)}</div>" if titled else figure_element(figure)
        for figure in figures
    ]
    return ['<div class="panels">', *drawn, "</div>"]


def figure_element(figure: Figure) -> str:
    """The element that a chart is drawn in, with its caption."""
    return (
        f'<figure><figcaption>{escape(figure.caption)}</figcaption><div class="chart" id="{escape(figure.name)}" '
        f'role="img" aria-label="{escape(f"{figure.title}, {figure.caption}")}"></div></figure>'
    )
