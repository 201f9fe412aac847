"""Collecting the results of a comparison from the directories of its finished runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from bakeoff.comparison.analysis import analyse
from bakeoff.comparison.budget_curves import budget_curves
from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, StartFacts, TaskFacts
from bakeoff.comparison.label_curves import label_curves, without_curves
from bakeoff.comparison.latency import Latency
from bakeoff.comparison.layer_profiles import RecipeLayers
from bakeoff.comparison.measured import measured_results, read_measurement
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.pretraining_run import SPENT, CurvePoint, PretrainingRun
from bakeoff.comparison.results import (
    Baseline,
    CheckpointEntry,
    Failure,
    FinetuningScore,
    RecipeEntry,
    Results,
)
from bakeoff.comparison.running.planned import PlannedFinetuning, PlannedTrainings
from bakeoff.comparison.statistics.breakdown import TestRow
from bakeoff.comparison.statistics.families import TaskGroups, interactions, over_tasks, shown_in_points
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.runs.records import read_metrics, read_summary
from bakeoff.tuning.results import TuningResults

MEASURED = ("learning_rate", "transferred_tensors", "best_epoch", "epochs", "seconds")
"""The figures of a fine-tuning's results.json that stand in the comparison's as they are."""


class DevAndTest(Record):
    """The metrics of a fine-tuned model on dev and on test."""

    dev: dict[str, float]
    """Metrics on dev, by name; shares are fractions."""
    test: dict[str, float]
    """Metrics on test, by name; shares are fractions."""


class FinetuneOutcome(Record):
    """The part of a fine-tuning's results.json that a comparison reads; all other keys are ignored."""

    scores: DevAndTest
    """The metrics of the weights that did best on dev."""
    learning_rate: float
    """The learning rate, chosen on dev where the plan gives several."""
    transferred_tensors: int
    """Number of tensors taken from the pre-trained run; 0 from scratch."""
    best_epoch: float | None
    """The epoch whose weights did best on dev, and were tested."""
    epochs: float | None = None
    """The number of epochs trained until the end, or until early stopping."""
    default_epochs: list[int] = Field(default=[])
    """The numbers of epochs that were raised for `least_steps`."""
    labels: dict[str, dict[str, float]] = Field(default={})
    """The scores of each class, label or type of spans on test, see `LabelScore`."""
    cut: dict[str, dict[str, int]] = Field(default={})
    """The rows of each split of which a part was not read, see `CutRows`."""
    seconds: float
    """Seconds of training, over all trials of the fine-tuning."""


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
    later: list[str]
    """The labels of recipes of the plan that are trained later."""
    looks: list[int]
    """The numbers of seeds at which verdicts were seen before more seeds were added."""
    machine: dict[str, str]
    """The machine's processor, cores, memory, accelerator and system, by name."""
    versions: dict[str, str]
    """Versions of Python and of the libraries, by name."""


def collect(planned: PlannedTrainings, seeds: list[int], failures: list[Failure], known: ComparisonFacts) -> Results:
    """The results of the seeds that have finished, with the statistics; recipes that failed are left out."""
    plan, tasks = planned.plan, known.tasks
    failed = {failure.recipe for failure in failures}
    configs = {task.name: task.data for task in plan.tasks}
    entries = [_entry(planned, recipe, seeds, known) for recipe in plan.recipes if recipe.name not in failed]
    looks = len(known.looks)

    def analysed(those: list[RecipeEntry], task: TaskFacts, **more: Any) -> tuple[Analysis, TaskGroups]:
        asking, clusters = plan.asking(task.name, task.unit, looks), known.clusters[task.name]
        return analyse(those, task, configs[task.name], clusters, planned.out, asking=asking, **more)

    common: dict[str, Any] = {"baselines": known.baselines, "grids": plan.grids, "orders": plan.trends}
    whole = [analysed(entries, task, texts=known.rows[task.name], **common) for task in tasks]
    analyses = [analysis for analysis, _ in whole]
    budgets = budget_curves(entries, tasks, analyses, lambda those, task: analysed(those, task)[0], looks)
    measured = measured_results(
        plan.measures,
        entries,
        known.unmeasured,
        str(plan.corpus),
        planned.out,
        plan.grids,
        plan.trends,
        lambda title, unit: plan.asking(title, unit, looks),
    )
    groups = without_curves(plan.tasks, [of_task for _, of_task in whole])
    together = plan.asking(None, "%", looks)
    return Results(
        title=plan.title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        planned_seeds=plan.seeds,
        finished_seeds=seeds,
        finetune_seeds=plan.finetune_seeds,
        device=plan.device,
        budget=known.budget,
        until_loss=plan.until_loss,
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
        grids=plan.grids,
        machine=known.machine,
        versions=known.versions,
    )


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
            _score(training, metrics[training.task.name], planned.out) for training in planned.finetunings(recipe, seed)
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
                _score(each, metrics[each.task.name], planned.out) for each in planned.finetunings_after(cooldown)
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


def _score(training: PlannedFinetuning, metric: str, root: Path) -> FinetuningScore:
    """The scores of a finished fine-tuning, read from its results.json.

    Raises:
        UserError: the file is damaged or lacks the metric.
    """
    path = training.directory / "results.json"
    outcome = FinetuneOutcome.check(read_json(path), str(path))
    for split in ("dev", "test"):
        if metric not in outcome["scores"][split]:
            raise UserError(f"{path}: scores.{split}: has no {metric}; delete {training.directory}, compare again")
    values = {
        "task": training.task.name,
        "seed": training.seed,
        "finetune_seed": training.finetune_seed,
        "initialisation": training.initialisation,
        "dev": outcome["scores"]["dev"],
        "test": outcome["scores"]["test"],
        "predictions": str((training.directory / "predictions.jsonl").relative_to(root)),
        **{name: outcome.get(name) for name in MEASURED},
        **{name: outcome[name] for name in ("cut", "default_epochs", "labels") if outcome.get(name)},
    }
    return FinetuningScore.parse(values, str(path))
