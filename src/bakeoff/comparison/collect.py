"""Reads the directories of finished runs into one `Results`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, StartFacts, TaskFacts
from bakeoff.comparison.recipe_plan import RecipePlan
from bakeoff.comparison.results import (
    Analysis,
    CurvePoint,
    Failure,
    FinetuningScore,
    Floor,
    Initialisation,
    PretrainingRun,
    RecipeEntry,
    Results,
)
from bakeoff.comparison.running.jobs import Finetuning, Jobs
from bakeoff.comparison.statistics import Group, all_pairs, describe, gains
from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.runs.records import read_metrics, read_summary
from bakeoff.tasks.finetuned_run import read_predictions
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.tuning.results import TuningResults


class DevAndTest(Record):
    """Metrics of the two splits that are not learned from."""

    dev: dict[str, float]
    """Shares as fractions."""
    test: dict[str, float]
    """Shares as fractions."""


class FinetuneOutcome(Record):
    """What is read of a fine-tuning's results.json."""

    scores: DevAndTest
    """All metrics."""
    learning_rate: float
    """The one that was chosen."""
    transferred_tensors: int
    """How many tensors came from the pre-training."""
    best_epoch: float | None
    """The epoch that did best on dev."""
    seconds: float
    """Time spent."""


@dataclass(frozen=True)
class ComparisonFacts:
    """The facts of a comparison that its runs do not hold."""

    budget: BudgetFacts
    """What each training may spend."""
    corpus: CorpusFacts
    """What is trained on."""
    tasks: list[TaskFacts]
    """The labelled data."""
    floors: list[Floor]
    """What is reached on it without a neural network."""
    searches: Mapping[str, TuningResults]
    """The search for the learning rate of each recipe that had one, by the recipe's name."""
    starts: Mapping[str, StartFacts]
    """The run from which a recipe's first weights come, by the name of each recipe that has one."""
    machine: dict[str, str]
    """The machine on which the comparison runs."""
    versions: dict[str, str]
    """With which libraries."""


def collect(jobs: Jobs, seeds: list[int], failures: list[Failure], known: ComparisonFacts) -> Results:
    """Everything about the seeds that have finished, with the statistics; recipes that failed are left out."""
    plan, tasks = jobs.plan, known.tasks
    failed = {failure.recipe for failure in failures}
    configs = {task.name: task.data for task in plan.tasks}
    entries = [_entry(jobs, recipe, seeds, known) for recipe in plan.recipes if recipe.name not in failed]
    return Results(
        title=plan.title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        planned_seeds=plan.seeds,
        finished_seeds=seeds,
        finetune_seeds=plan.finetune_seeds,
        device=plan.device,
        budget=known.budget,
        search=plan.search,
        corpus=known.corpus,
        tasks=tasks,
        recipes=entries,
        failures=failures,
        floors=known.floors,
        analyses=[analyse(entries, task, configs[task.name], jobs.out) for task in tasks],
        machine=known.machine,
        versions=known.versions,
    )


def analyse(entries: list[RecipeEntry], task: TaskFacts, config: TaskConfig, root: Path) -> Analysis:
    """The statistics of one task.

    Args:
        entries: the recipes with their scores.
        task: which task.
        config: the same, as the plan has it.
        root: what the scores' files of predictions are relative to.
    """
    groups: dict[Initialisation, dict[str, Group]] = {"pretrained": {}, "scratch": {}}
    for entry in entries:
        for start, found in groups.items():
            runs: dict[int, list[tuple[float, Vector]]] = {}
            for score in entry.scores:
                if score.task == task.name and score.initialisation == start:
                    values = config.contributions(_predictions(root / score.predictions, task, config), task.metric)
                    known = np.zeros(0) if values is None else values
                    runs.setdefault(score.seed, []).append((score.test[task.metric], known))
            if runs:
                found[entry.label] = Group.of(runs)
    pretrained, scratch = groups["pretrained"], groups["scratch"]
    return Analysis(
        task=task.name,
        pretrained={label: describe(group) for label, group in pretrained.items()},
        scratch={label: describe(group) for label, group in scratch.items()},
        pairs=all_pairs(pretrained, task.lower_is_better),
        gains=gains(pretrained, scratch),
    )


def _entry(jobs: Jobs, recipe: RecipePlan, seeds: list[int], known: ComparisonFacts) -> RecipeEntry:
    """One recipe with its runs and scores."""
    metrics = {task.name: task.metric for task in known.tasks}  # by which each is decided
    runs, scores, summary = [], [], {}
    for seed in seeds:
        directory = jobs.pretraining(recipe, seed).directory
        summary = read_summary(directory / "summary.json")
        runs.append(_run(seed, directory, summary, jobs.out))
        scores += [_score(job, metrics[job.task.name], jobs.out) for job in jobs.finetunings(recipe, seed)]
    return RecipeEntry(
        label=recipe.name,
        recipe=_trained(jobs.recipes[recipe.name], known.corpus),
        search=known.searches.get(recipe.name),
        start=known.starts.get(recipe.name),
        parameters=summary["parameters"],
        flops_per_token=summary["flops_per_token"],
        steps=summary["steps"],
        runs=runs,
        scores=scores,
    )


def _trained(recipe: dict[str, Any], corpus: CorpusFacts) -> dict[str, Any]:
    """The recipe with the tokenizer that was used, which is the corpus's."""
    return recipe if corpus.tokenizer_config is None else {**recipe, "tokenizer": corpus.tokenizer_config}


def _run(seed: int, directory: Path, summary: dict[str, Any], root: Path) -> PretrainingRun:
    """One pre-training with its validations."""
    lines = [line for line in read_metrics(directory / "metrics.jsonl") if line["kind"] == "validation"]
    names = ("steps", "tokens", "seconds", "work_seconds", "flops", "tokens_per_second", "peak_memory_bytes")
    return PretrainingRun(
        seed=seed,
        path=str(directory.relative_to(root)),
        validation_loss=lines[-1]["loss"] if lines else None,
        curve=[CurvePoint(**{name: line[name] for name in CurvePoint.model_fields if name in line}) for line in lines],
        **{name: summary.get(name) for name in (*names, "unigram_entropy")},
    )


def _score(job: Finetuning, metric: str, root: Path) -> FinetuningScore:
    """The scores of a finished fine-tuning, as its results.json has them."""
    path = job.directory / "results.json"
    found = FinetuneOutcome.check(read_json(path), str(path))
    for split in ("dev", "test"):
        if metric not in found["scores"][split]:
            raise UserError(f"{path}: scores.{split}: has no {metric}; delete {job.directory}, compare again")
    values = {
        "task": job.task.name,
        "seed": job.seed,
        "finetune_seed": job.finetune_seed,
        "initialisation": job.initialisation,
        "dev": found["scores"]["dev"],
        "test": found["scores"]["test"],
        "predictions": str((job.directory / "predictions.jsonl").relative_to(root)),
        **{name: found.get(name) for name in ("learning_rate", "transferred_tensors", "best_epoch", "seconds")},
    }
    return FinetuningScore.parse(values, str(path))


def _predictions(path: Path, task: TaskFacts, config: TaskConfig) -> list[dict[str, Any]]:
    """What was predicted of the test rows, in the file's order.

    Raises:
        UserError: the file is damaged, or has another number of rows.
    """
    lines, rows = read_predictions(path, config.record), task.rows["test"]
    if len(lines) != rows:
        raise UserError(f"{path}: {len(lines)} predictions instead of {rows}; delete {path.parent}, compare again")
    return lines
