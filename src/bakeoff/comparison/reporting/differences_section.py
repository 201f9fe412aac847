"""The section of a report on which differences are real: on each task, and over all."""

from html import escape

from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.family_findings import of_task, over_tasks_section
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Results
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.report.elements import note


def differences_section(results: Results) -> str:
    """The section, as HTML; empty where nothing was tested."""
    if not any(analysis.pairs or analysis.against_baseline for analysis in results.analyses):
        return ""
    parts = [
        "<h2>Which differences are real</h2>",
        note(
            "A difference exceeds the noise if it would hardly have come about (p below 0.05, corrected for the rows "
            "of its table) among equal recipes with other seeds and other test examples. The interval is of that "
            "difference alone, and may therefore leave out zero where the corrected verdict is still “within the "
            "noise”."
        ),
        *(_of_task(results, each) for each in results.analyses),
        over_tasks_section(results),
    ]
    return "\n".join(parts)


def _of_task(results: Results, analysis: Analysis) -> str:
    """The differences of a task: between every two recipes, and of each recipe from the best baseline that learns."""
    measure, parts = ShownMetric.of(results, analysis.task), []
    if analysis.pairs or analysis.against_baseline:
        parts.append(f"<h3>{escape(analysis.task)}</h3>")
    if analysis.pairs:
        parts.append(tables.differences(measure, analysis.pairs, "Difference of pre-trained recipes"))
    parts += of_task(results, analysis)
    if tested := analysis.against_baseline.values():
        parts.append(tables.differences(measure, tested, "Difference from what needs no neural network"))
    return "".join(parts)
