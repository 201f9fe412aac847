"""Collecting the results of a comparison from the directories of its finished runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.comparison.analysis import analyse
from bakeoff.comparison.budget_curves import budget_curves
from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, StartFacts, TaskFacts
from bakeoff.comparison.finetuning_score import read_score
from bakeoff.comparison.label_curves import label_curves, without_curves
from bakeoff.comparison.latency import Latency
from bakeoff.comparison.layer_profiles import LayerSimilarity, RecipeLayers
from bakeoff.comparison.measured import MeasuredResults, measured_results, read_measurement
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.pretraining_run import SPENT, CurvePoint, PretrainingRun
from bakeoff.comparison.results import (
    Baseline,
    CheckpointEntry,
    Failure,
    RecipeEntry,
    Results,
)
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.comparison.statistics.breakdown import TestRow
from bakeoff.comparison.statistics.families import TaskGroups, interactions, over_tasks, shown_in_points
from bakeoff.comparison.statistics.series import Series
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.comparison.until_loss import times_to_loss
from bakeoff.runs.records import read_metrics, read_summary
from bakeoff.tuning.results import TuningResults


@dataclass(frozen=True)
class ComparisonFacts:
    """The facts of a comparison that stand in none of its runs' directories."""

    budget: BudgetFacts
    """The budget of every pre-training."""
    corpus: CorpusFacts
    """The corpus of the plan."""
    own_corpora: Mapping[str, CorpusFacts]
    """The corpora of recipes that have another one, by label."""
    tasks: list[TaskFacts]
    """The tasks of the fine-tunings, in the plan's order."""
    baselines: list[Baseline]
    """The scores on these tasks of methods without a neural network."""
    clusters: Mapping[str, Sequence[int]]
    """The number of the cluster of each test row, by the task's name; empty: all rows are independent."""
    rows: Mapping[str, Sequence[TestRow]]
    """The test rows, by the task's name."""
    unmeasured: Mapping[tuple[str, str], str]
    """The reasons why recipes are left out of measures, by the recipe's label and the measure's title."""
    searches: Mapping[str, TuningResults]
    """The finished searches, by the recipe's label; recipes without a search are missing."""
    starts: Mapping[str, Mapping[int, StartFacts]]
    """The runs that recipes take their first weights from, by label and seed; recipes with random ones are missing."""
    latencies: list[Latency]
    """The latency of each recipe on each task; empty before the last training."""
    layers: list[RecipeLayers]
    """What the layers of each recipe do; empty before the last training."""
    similarities: list[LayerSimilarity]
    """How alike the layers of recipes are to those of one; empty before the last training."""
    later: list[str]
    """The labels of recipes of the plan that are trained later."""
    looks: list[int]
    """The numbers of seeds at which verdicts were seen before more seeds were added."""
    machine: dict[str, str]
    """The machine's processor, cores, memory, accelerator and system, by name."""
    versions: dict[str, str]
    """Versions of Python and of the libraries, by name."""


class _Statistics(NamedTuple):
    """The statistics of all tasks and measures."""

    analyses: list[Analysis]
    """Those of the tasks."""
    groups: list[TaskGroups]
    """The scores on the tasks."""
    measured: MeasuredResults
    """Those of what was measured without fine-tuning."""
    budgets: list[Series]
    """The curves of both over shares of the budget."""


def _statistics(planned: PlannedTrainings, entries: list[RecipeEntry], known: ComparisonFacts) -> _Statistics:
    plan, looks = planned.plan, len(known.looks)
    configs = {task.name: task.data for task in plan.tasks}
    common: dict[str, Any] = {"baselines": known.baselines, "grids": plan.grids, "orders": plan.trends}

    def asking(task: str, unit: str) -> Asking:
        return plan.asking(task, unit, looks)

    def analysed(those: list[RecipeEntry], task: TaskFacts, **more: Any) -> tuple[Analysis, TaskGroups]:
        asked, clusters = asking(task.name, task.unit), known.clusters[task.name]
        return analyse(those, task, configs[task.name], clusters, planned.out, asking=asked, **more)

    def measured_of(those: list[RecipeEntry]) -> MeasuredResults:
        facts = known.unmeasured, str(plan.corpus), planned.out, plan.grids, plan.trends, asking
        return measured_results(plan.measures, those, *facts)

    def all_of(those: list[RecipeEntry]) -> list[Analysis]:
        return [*(analysed(those, task)[0] for task in known.tasks), *measured_of(those).analyses]

    whole = [analysed(entries, task, texts=known.rows[task.name], **common) for task in known.tasks]
    analyses, measured = [analysis for analysis, _ in whole], measured_of(entries)
    facts = [*known.tasks, *measured.facts]
    budgets = budget_curves(entries, facts, [*analyses, *measured.analyses], all_of, looks)
    return _Statistics(analyses, [of_task for _, of_task in whole], measured, budgets)


def collect(planned: PlannedTrainings, seeds: list[int], failures: list[Failure], known: ComparisonFacts) -> Results:
    """The results of the seeds that have finished, with the statistics; recipes that failed are left out."""
    plan, tasks, looks = planned.plan, known.tasks, len(known.looks)
    failed = {failure.recipe for failure in failures}
    entries = [_entry(planned, recipe, seeds, known) for recipe in plan.recipes if recipe.name not in failed]
    analyses, of_tasks, measured, budgets = _statistics(planned, entries, known)
    groups, together = without_curves(plan.tasks, of_tasks), plan.asking(None, "%", looks)
    results = Results(
        title=plan.title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        planned_seeds=plan.seeds,
        finished_seeds=seeds,
        finetune_seeds=plan.finetune_seeds,
        device=plan.device,
        budget=known.budget,
        until_loss=None if plan.until is None else plan.until[0],
        until_unit="nats" if plan.until is None else plan.until[1],
        search=plan.search,
        corpus=known.corpus,
        tasks=[*tasks, *measured.facts],
        recipes=entries,
        failures=failures,
        later=known.later,
        baselines=[*known.baselines, *measured.baselines],
        analyses=[*analyses, *measured.analyses],
        series=[*label_curves(plan.tasks, tasks, analyses, looks), *budgets],
        over_tasks=over_tasks(groups, plan.trends, together),
        averaged=[each.task.name for each in shown_in_points(groups)],
        interactions=interactions(groups, together),
        baseline=plan.baseline,
        looks=known.looks,
        latency=plan.latency,
        latencies=known.latencies,
        layers=known.layers,
        similarities=known.similarities,
        grids=plan.grids,
        machine=known.machine,
        versions=known.versions,
    )
    return results.model_copy(update={"to_loss": times_to_loss(results)})


def _entry(planned: PlannedTrainings, recipe: RecipePlan, seeds: list[int], known: ComparisonFacts) -> RecipeEntry:
    """One recipe with its runs and scores of these seeds, read from their directories."""
    metrics = {task.name: task.metric for task in known.tasks}  # by which each is decided
    runs, scores, measurements, summary = [], [], [], {}
    for seed in seeds:
        directory = planned.pretraining(recipe, seed).directory
        summary = read_summary(directory / "summary.json")
        if not recipe.as_it_is:
            runs.append(_run(seed, directory, summary, planned.out))
        scores += [
            read_score(training, metrics[training.task.name], planned.out)
            for training in planned.finetunings(recipe, seed)
        ]
        measurements += [
            read_measurement(each.directory, each.measure.title, seed, planned.out)
            for each in planned.measurements(recipe, seed)
        ]
    return RecipeEntry(
        label=recipe.name,
        recipe=_trained(planned.recipes[recipe.name], known, recipe),
        corpus=known.own_corpora.get(recipe.name),
        as_it_is=recipe.as_it_is,
        finetune=recipe.finetune,
        search=known.searches.get(recipe.name),
        starts={seed: each for seed, each in known.starts.get(recipe.name, {}).items() if seed in seeds},
        parameters=summary["parameters"],
        flops_per_token=summary["flops_per_token"],
        steps=0 if recipe.as_it_is else summary["steps"],
        runs=runs,
        scores=scores,
        checkpoints=_checkpoints(planned, recipe, seeds, metrics),
        measurements=measurements,
    )


def _checkpoints(
    planned: PlannedTrainings, recipe: RecipePlan, seeds: list[int], metrics: Mapping[str, str]
) -> list[CheckpointEntry]:
    """The pre-trainings of a recipe that ended before the whole budget was spent, with their scores."""
    entries: dict[float, CheckpointEntry] = {}
    for seed in seeds:
        for cooldown in planned.cooldowns(recipe, seed):
            summary = read_summary(cooldown.directory / "summary.json")
            entry = entries.setdefault(
                cooldown.share, CheckpointEntry(share=cooldown.share, steps=summary["steps"], runs=[], scores=[])
            )
            entry.runs.append(_run(seed, cooldown.directory, summary, planned.out))
            entry.scores.extend(
                read_score(each, metrics[each.task.name], planned.out) for each in planned.finetunings_after(cooldown)
            )
            entry.measurements.extend(
                read_measurement(each.directory, each.measure.title, seed, planned.out)
                for each in planned.measurements_after(cooldown)
            )
    return list(entries.values())


def _trained(recipe: dict[str, Any], known: ComparisonFacts, plan: RecipePlan) -> dict[str, Any]:
    """The recipe with its corpus's tokenizer, which its pre-trainings use."""
    corpus = known.own_corpora.get(plan.name, known.corpus)
    if corpus.tokenizer_config is None or plan.as_it_is:
        return recipe
    return {**recipe, "tokenizer": corpus.tokenizer_config}


def _run(seed: int, directory: Path, summary: dict[str, Any], root: Path) -> PretrainingRun:
    """One pre-training, read from its summary and the validations in its metrics.jsonl."""
    lines = [line for line in read_metrics(directory / "metrics.jsonl") if line["kind"] == "validation"]
    return PretrainingRun(
        seed=seed,
        path=str(directory.relative_to(root)),
        validation_loss=lines[-1]["loss"] if lines else None,
        curve=[_point(line) for line in lines],
        **{name: summary.get(name) for name in (*SPENT, "unigram_entropy")},
    )


def _point(line: dict[str, Any]) -> CurvePoint:
    """A validation, without the figures that are no number."""
    values = {name: line[name] for name in CurvePoint.model_fields if name in line}
    for name in ("losses", "bits_per_byte", "accuracy"):
        values[name] = {key: value for key, value in values.get(name, {}).items() if value is not None}
    return CurvePoint(**values)
