"""A comparison's answer and scores on the terminal."""

from pathlib import Path

from rich.table import Table

from bakeoff.comparison.reporting.cautions import MOST, cautions
from bakeoff.comparison.reporting.cut_texts import cut_notes
from bakeoff.comparison.reporting.decision import decisions
from bakeoff.comparison.reporting.factor_findings import mean_at
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.search_findings import COLUMNS, rows
from bakeoff.comparison.reporting.verdict_words import found_in_half, verdict, ways_to_decide
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.factors import FactorAnalysis
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.console import Console, titled_table
from bakeoff.display.wording import counted, duration

MOST_PAIRS = 10
"""Most pairs of a task whose verdicts are printed; the others stand in the report."""


def print_results(results: Results, out: Path) -> None:
    """Print a table for each task, the findings, and the path of the report."""
    console = Console()
    for analysis in results.analyses:
        console.print(_table(results, analysis))
        if any(pair.real is not None for pair in analysis.pairs):
            console.print(_verdicts(ShownMetric.of(results, analysis.task), analysis))
        for factors in analysis.factors:
            console.print(_factors(results, analysis, factors))
    if results.search is not None:
        console.print(_searches(results))
    answer = findings(results)
    console.print(f"\n{answer.headline}", style="bold")
    remarks = cautions(results)
    for line in [*answer.details, *decisions(results), *remarks[:MOST]]:
        console.print(f"- {line}")
    if (more := len(remarks) - MOST) > 0:
        console.print(f"- {counted(more, 'further remark')} in the report")
    console.print(f"\nreport: {out / 'report.html'}", soft_wrap=True)


def _table(results: Results, analysis: Analysis) -> Table:
    measure = ShownMetric.of(results, analysis.task)
    seeds = len(results.finished_seeds)
    title = f"{analysis.task}: test {measure.heading}; mean ± deviation over {counted(seeds, 'seed')}"
    table = titled_table(title)
    table.add_column("recipe", overflow="fold")  # where the terminal is narrow, and never the numbers
    for name in ("pre-trained", *(("from scratch", "gain") if analysis.scratch else ()), "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in (each for each in results.recipes if each.label in analysis.pretrained):
        seconds = sum(run.seconds for run in entry.runs) / max(1, len(entry.runs))
        table.add_row(
            entry.label,
            _spread(measure, analysis.pretrained.get(entry.label)),
            *(_gained(measure, analysis, entry.label) if analysis.scratch else ()),
            duration(seconds),
        )
    table.add_section()
    for baseline in results.baselines:
        if baseline.task == analysis.task:
            table.add_row(baseline.name, measure.value(baseline.test[measure.task.metric]))
    notes = ["* beyond the noise of seeds and test rows"] if any(g.real for g in analysis.gains.values()) else []
    if notes := [*notes, *cut_notes(results, analysis.task, ("test",))]:
        table.caption, table.caption_justify = "\n".join(notes), "left"
    return table


def _gained(measure: ShownMetric, analysis: Analysis, label: str) -> tuple[str, str]:
    """The cells of a recipe's score from scratch, and of what pre-training adds to it."""
    gain = analysis.gains.get(label)
    change = "" if gain is None else measure.change(gain.difference) + (" *" if gain.real else "  ")
    return _spread(measure, analysis.scratch.get(label)), change


def _factors(results: Results, analysis: Analysis, factors: FactorAnalysis) -> Table:
    """The mean at each level of a grid's factors."""
    measure = ShownMetric.of(results, analysis.task)
    table = titled_table(f"{analysis.task}: mean {measure.heading} at each level, over those of other factors")
    for name in ("factor", "level"):
        table.add_column(name, overflow="fold")
    table.add_column("pre-trained", justify="right", no_wrap=True)
    for factor, levels in next(each for each in results.grids if each.name == factors.grid).factors.items():
        for number, level in enumerate(levels):
            table.add_row("" if number else factor, level, mean_at(measure, factors, factor, level))
        table.add_section()
    return table


def _verdicts(measure: ShownMetric, analysis: Analysis) -> Table:
    """The verdicts on a task's pairs; of undecided ones, what would have been found and what would decide them."""
    table = titled_table(f"{analysis.task}: which differences are real")
    table.add_column("difference", overflow="fold")
    table.add_column(measure.steps.strip() or "size", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    table.add_column("found in\nhalf of all", justify="right", no_wrap=True)
    table.add_column("to decide", overflow="fold")
    for pair in analysis.pairs[:MOST_PAIRS]:
        table.add_row(
            f"{pair.first} − {pair.second}",
            measure.change(pair.difference),
            verdict(measure, pair),
            found_in_half(measure, pair),
            ways_to_decide(measure, pair, {analysis.task: measure.rows}),
        )
    if (more := len(analysis.pairs) - MOST_PAIRS) > 0:
        table.caption, table.caption_justify = f"{counted(more, 'further pair')} in the report", "left"
    return table


def _searches(results: Results) -> Table:
    title = "searched before, by held-out loss; cost in pre-trainings"
    table = titled_table(title)
    kept = [column for column, name in enumerate(COLUMNS) if name not in ("its own", "time")]  # as many as fit
    for column in kept:
        number = COLUMNS[column] in ("held-out loss", "second behind", "cost")  # which stays whole on a narrow terminal
        head = COLUMNS[column].replace(" ", "\n") if number else COLUMNS[column]
        table.add_column(head, justify="left" if column < 2 else "right", no_wrap=number, overflow="fold")
    for row in rows(results):
        table.add_row(*(row[column] for column in kept))
    return table


def _spread(measure: ShownMetric, spread: Spread | None) -> str:
    if spread is None:
        return ""
    return measure.value(spread.mean) + ("" if spread.deviation is None else f" ± {measure.value(spread.deviation)}")
