"""The tables of a report's sections as plain cells, so that Markdown and LaTeX have what the page has."""

import itertools
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from bakeoff.comparison.reporting.decision_section import decision_section, with_a_choice
from bakeoff.comparison.reporting.differences_section import differences_section
from bakeoff.comparison.reporting.factor_findings import factor_section
from bakeoff.comparison.reporting.plain_cells import Cell, PlainTable
from bakeoff.comparison.reporting.series_section import series_section
from bakeoff.comparison.reporting.until_loss import until_section
from bakeoff.comparison.reporting.where_section import where_section
from bakeoff.comparison.results import Results


def section_tables(results: Results) -> Iterator[PlainTable]:
    """The tables of what is real, of score against cost, of classes and lengths, of curves, factors and a loss."""
    sections = {
        "real": differences_section(results),
        "cost": decision_section(results, dict.fromkeys(with_a_choice(results), ())),
        "where": where_section(results),
        "curve": series_section(results, [None] * len(results.series)),
        "factor": factor_section(results, []),
        "until": until_section(results),
    }
    for name, html in sections.items():
        reader = _TableReader(name)
        reader.feed(html)
        reader.close()
        yield from reader.tables


class _TableReader(HTMLParser):
    """Reads the tables of a section with their headings, and the notes before them.

    Text in small type stands between brackets, and what is in bold makes its cell strong.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.tables: list[PlainTable] = []
        self._headings = {"h2": "", "h3": ""}
        self._notes: list[str] = []
        self._head: list[str] = []
        self._rows: list[list[Cell]] = []
        self._runs: list[tuple[str, bool]] | None = None  # of what is being read, in bold or not
        self._words: set[int] = set()  # the columns of text
        self._bold = self._small = self._of_charts = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a heading, a note, a table, a row or a cell."""
        classes = dict(attrs).get("class") or ""
        self._of_charts = "of-charts" in classes
        if tag in ("h2", "h3", "p", "th", "td"):
            self._runs = []
            if tag == "th" and classes == "text":
                self._words.add(len(self._rows[-1]))
        elif tag == "table":
            self._head, self._rows, self._words = [], [], set()
        elif tag == "tr":
            self._rows.append([])
        elif tag == "b":
            self._bold = True
        elif tag == "br":
            self.handle_data("; ")
        elif tag == "small":
            if self._runs and self._runs[-1][0] == "; ":
                self._runs.pop()
            self._small = True
            self.handle_data(" (")

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        text = " ".join("".join(text for text, _ in self._runs or []).split())
        if tag in ("h2", "h3"):
            self._headings[tag] = text
            if tag == "h2":
                self._headings["h3"], self._notes = "", []
        elif tag == "p" and not self._of_charts:
            self._notes.append(text)
        elif tag in ("th", "td"):
            self._rows[-1].append(_cell(self._runs or []))
        elif tag == "b":
            self._bold = False
        elif tag == "small" and self._small:
            self.handle_data(")")
            self._small = False
        elif tag == "thead":
            self._head = [cell.whole for cell in self._rows.pop()]
        elif tag == "table":
            title = ": ".join(filter(None, self._headings.values()))
            name = f"{self.name}-{len(self.tables) + 1}"
            self.tables.append(PlainTable(name, title, " ".join(self._notes), self._head, self._rows, self._words))
            self._notes = []

    def handle_data(self, data: str) -> None:
        """Keep the text of what is being read."""
        if self._runs is not None:
            self._runs.append((data, self._bold))


def _cell(runs: Sequence[tuple[str, bool]]) -> Cell:
    """A cell of texts in bold or not; neighbours that are alike are one."""
    parts = [
        Cell("".join(text for text, _ in those), bold)
        for bold, those in itertools.groupby(runs, key=lambda run: run[1])
    ]
    first, *rest = parts or [Cell("")]
    return Cell(first.text, first.strong, rest)
