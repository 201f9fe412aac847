"""A comparison's answer and tables in Markdown: report.md, for a repository, an issue or a note."""

from collections.abc import Iterator
from pathlib import Path

from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.decision import decisions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.plain_cells import Cell, PlainTable
from bakeoff.comparison.reporting.plain_tables import plain_tables
from bakeoff.comparison.reporting.unequal import budget_text
from bakeoff.comparison.results import Results
from bakeoff.display.markdown import cell, sentence, text
from bakeoff.display.wording import counted
from bakeoff.durable import write_atomically


def write_markdown(results: Results, path: Path) -> None:
    """Write the answer, the cautions and the tables as one Markdown file, whole or not at all."""
    answer = findings(results)
    sizes = [counted(len(results.recipes), "recipe"), counted(len(results.finished_seeds), "seed")]
    sizes += [counted(len(results.tasks), "task"), budget_text(results, each=True), results.created[:10]]
    parts = [
        f"# {text(results.title)}",
        text(", ".join(sizes)),
        f"**{sentence(answer.headline)}**",
        _list([*answer.details, *decisions(results)]),
    ]
    if remarks := cautions(results):
        parts += ["## Before you rely on this", _list(remarks)]
    before = None
    for table in plain_tables(results):
        parts += [f"## {text(table.title)}"] if table.title != before else []
        parts += [text(table.caption), "\n".join(_lines(table))]
        before = table.title
    write_atomically(path, "\n\n".join(part for part in parts if part) + "\n")


def _list(sentences: list[str]) -> str:
    return "\n".join(f"- {sentence(each)}" for each in sentences)


def _lines(table: PlainTable) -> Iterator[str]:
    yield f"| {' | '.join(map(cell, table.head))} |"
    yield f"|---{''.join('|---' if at in table.words else '|---:' for at in range(1, len(table.head)))}|"
    for row in table.rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(each: Cell) -> str:
    return each.marked(cell, "**{}**")
