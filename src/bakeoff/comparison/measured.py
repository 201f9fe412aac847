"""The results of what recipes were measured on without fine-tuning: scores, facts and statistics."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bakeoff.comparison.facts import MeasurementScore, TaskFacts
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.results import Baseline, RecipeEntry
from bakeoff.comparison.statistics.factors import factor_analyses
from bakeoff.comparison.statistics.families import trends
from bakeoff.comparison.statistics.groups import Group, moderate
from bakeoff.comparison.statistics.pairs import all_pairs, describe
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.config import Record
from bakeoff.display.wording import quoted
from bakeoff.json_files import read_json, read_json_lines
from bakeoff.tasks.measures.measure import Anchor, MeasureConfig, Measurement, Panel

ROWS = "rows.jsonl"
"""The file of what each row contributes, beside the results of a measurement."""


class MeasurementOutcome(Record):
    """The results.json of a measurement."""

    scores: dict[str, float]
    """All metrics."""
    facts: dict[str, Any]
    """What a reader of the scores has to know beside them."""
    seconds: float
    """Seconds of the measurement."""


class MeasuredResults(NamedTuple):
    """What follows from the measurements of all recipes."""

    facts: list[TaskFacts]
    """The facts of each comparison."""
    baselines: list[Baseline]
    """What needs no model."""
    analyses: list[Analysis]
    """The statistics of each comparison."""


def read_measurement(directory: Path, measure: str, seed: int, root: Path) -> MeasurementScore:
    """A measurement from its directory.

    Args:
        directory: the directory.
        measure: the measure's title.
        seed: the seed whose run was measured.
        root: the comparison's directory.

    Raises:
        UserError: a file is damaged.
    """
    path = directory / "results.json"
    outcome = MeasurementOutcome.check(read_json(path), str(path))
    return MeasurementScore(measure=measure, seed=seed, rows=str((directory / ROWS).relative_to(root)), **outcome)


def measured_results(
    measures: Sequence[MeasureConfig],
    entries: Sequence[RecipeEntry],
    unmeasured: Mapping[tuple[str, str], str],
    text: str,
    root: Path,
    grids: Sequence[GridFacts],
    orders: Mapping[str, Sequence[str]],
    asking: Callable[[str, str], Asking],
) -> MeasuredResults:
    """The comparisons that the measurements of recipes allow, with their statistics.

    Args:
        measures: the plan's measures.
        entries: the recipes with their measurements.
        unmeasured: the reasons why recipes are left out, by the recipe's label and the measure's title.
        text: the plan's corpus.
        root: the comparison's directory.
        grids: the grids that recipes are cells of.
        orders: recipes in an order, by its name.
        asking: how the questions of a measure are asked, by its title and the unit of its metric.
    """
    found = MeasuredResults([], [], [])
    recipes = {entry.label: entry.recipe for entry in entries}
    for measure in measures:
        kept = [
            (score.seed, _measurement(entry.label, score, root))
            for entry in entries
            for score in entry.measurements
            if score.measure == measure.title
        ]
        panels = measure.panels([each for _, each in kept], recipes, text)
        notes = [
            f"{quoted(name)} {reason}, and is left out"
            for (name, of), reason in unmeasured.items()
            if of == measure.title
        ]
        for panel in panels:
            name = _name(measure.title, panel, panels)
            scores = {
                label: {seed: each.scores[panel.metric] for seed, each in kept if each.label == label}
                for label in panel.labels
            }
            facts = _facts(name, measure, panel, [*notes, *panel.notes])
            found.facts.append(facts)
            groups = _groups(panel, scores)
            asked = asking(measure.title, facts.unit)
            if panel is not _alike(panel, panels)[0]:  # a margin is in the unit of the first: bits, and no perplexity
                asked = asked._replace(margin=None)
            found.analyses.append(_analysis(facts, groups, grids, orders, asked))
            found.baselines.extend(_baseline(name, panel.metric, anchor) for anchor in panel.anchors)
    return found


def _baseline(task: str, metric: str, anchor: Anchor) -> Baseline:
    kind: Literal["simplest", "learned"] = "learned" if anchor.counts else "simplest"
    return Baseline(task=task, kind=kind, name=anchor.name, dev={}, test={metric: anchor.value})


def _name(measure: str, panel: Panel, panels: Sequence[Panel]) -> str:
    """The name of one of the comparisons by a measure: held-out text: next token, bits per byte."""
    if len(panels) == 1:
        return measure
    several = len(_alike(panel, panels)) > 1
    return f"{measure}: {panel.title}" + (f", {panel.shown.title}" if several else "")


def _alike(panel: Panel, panels: Sequence[Panel]) -> list[Panel]:
    """The comparisons of the same by all of its metrics."""
    return [each for each in panels if each.title == panel.title]


def _measurement(label: str, score: MeasurementScore, root: Path) -> Measurement:
    return Measurement(label, score.scores, read_json_lines(root / score.rows), score.facts)


def _facts(name: str, measure: MeasureConfig, panel: Panel, notes: list[str]) -> TaskFacts:
    rows = len(next(iter(panel.rows.values()))[0])
    return TaskFacts(
        name=name,
        kind=measure.kind,
        metric=panel.metric,
        metric_title=panel.shown.title,
        unit=panel.shown.unit,
        lower_is_better=panel.lower_is_better,
        lowest=panel.shown.lowest,
        classes=0,
        rows={"test": rows},
        clusters=len(set(panel.clusters)) or None,
        files=dict(panel.files),
        notes=notes,
    )


def _groups(panel: Panel, scores: Mapping[str, Mapping[int, float]]) -> dict[str, Group]:
    """The scores of a panel's recipes, with what each row contributes."""
    together = np.array(panel.clusters, np.intp) if panel.clusters else None
    return moderate(
        {
            label: Group.of(
                {
                    seed: [(score, values)]
                    for (seed, score), values in zip(scores[label].items(), panel.rows[label], strict=True)
                },
                together,
                panel.reach,
            )
            for label in panel.labels
        }
    )


def _analysis(
    facts: TaskFacts,
    groups: Mapping[str, Group],
    grids: Sequence[GridFacts],
    orders: Mapping[str, Sequence[str]],
    asking: Asking,
) -> Analysis:
    return Analysis(
        task=facts.name,
        pretrained={label: describe(group) for label, group in groups.items()},
        pairs=all_pairs(groups, facts.lower_is_better, asking),
        trends=trends(groups, orders, asking),
        factors=factor_analyses(grids, groups, facts.lower_is_better, asking),
    )
