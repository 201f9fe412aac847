"""The tasks of a comparison: their facts, and their baselines, the scores of methods without a neural network."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff import checksums
from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.plan import directory_name
from bakeoff.comparison.results import Baseline
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.task_plan import TaskPlan
from bakeoff.config import Record, differing
from bakeoff.display.wording import quoted
from bakeoff.jobs.runner import Say
from bakeoff.json_files import read_json
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.task import Learned


class KeptTask(Record):
    """A task's facts and baselines, which one call of `compare` keeps in a file for the next."""

    settings: dict[str, Any]
    """The task's settings, with checksums of its files; other settings make the rest void."""
    facts: dict[str, Any]
    """The task's facts, see `TaskFacts`."""
    baselines: list[dict[str, Any]]
    """The task's baselines, see `Baseline`."""
    clusters: list[int]
    """The number of the cluster of each test row; empty: all rows are independent."""


class KnownTasks(NamedTuple):
    """What is known of the tasks before any training."""

    facts: list[TaskFacts]
    """The facts of each task, in the plan's order."""
    baselines: list[Baseline]
    """The baselines of all tasks."""
    clusters: dict[str, list[int]]
    """The number of the cluster of each test row, by the task's name; empty: all rows are independent."""


def read_tasks(
    tasks: dict[str, tuple[TaskPlan, dict[str, Any]]], corpus: Path, out: Path, engine: Engine, say: Say
) -> KnownTasks:
    """What is known of every task: measured, or kept by an earlier call for the very same rows.

    Args:
        tasks: each task with its settings, by name.
        corpus: the corpus of the pre-trainings.
        out: the comparison's directory.
        engine: the engine, which reads tasks.
        say: a function that shows a line before a task is read.
    """
    known = KnownTasks([], [], {})
    for name, (task, settings) in tasks.items():
        path = out / "baselines" / f"{directory_name(name)}.json"
        kept = read_json(path) if path.is_file() else {}
        if kept.get("clusters") is not None:  # else of a version that had none
            KeptTask.check(kept, str(path))
        if kept.get("clusters") is None or any(differing(kept["settings"], settings)):
            say(f"reading {quoted(name)}; what is reached without a neural network")
            kept = {"settings": settings, **_measured(task, corpus, engine)}
            path.parent.mkdir(parents=True, exist_ok=True)
            checksums.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        known.facts.append(TaskFacts.parse(kept["facts"], f"{path}: facts", strict=True))
        known.baselines.extend(Baseline.parse(each, f"{path}: baselines", strict=True) for each in kept["baselines"])
        known.clusters[name] = kept["clusters"]
    return known


def _measured(task: TaskPlan, corpus: Path, engine: Engine) -> dict[str, Any]:
    data = engine.task(task)
    metric = data.task.metric
    shown = task.data.described(metric)
    facts = TaskFacts(
        name=task.name,
        kind=task.data.kind,
        metric=metric,
        metric_title=shown.title,
        unit=shown.unit,
        lower_is_better=metric in task.data.lower_is_better,
        lowest=shown.lowest,
        classes=len(data.task.classes),
        rows={split: len(getattr(data, split)) for split in ("train", "dev", "test")},
        clusters=len(set(data.clusters)) or None,
        files={split: str(path) if path else None for split, path in task.files.items()},
        notes=[*data.notes, *engine.hidden(corpus, data)],
    )
    task_baselines = baselines(task.name, data)
    return {
        "facts": facts.model_dump(mode="json"),
        "baselines": [baseline.model_dump(mode="json") for baseline in task_baselines],
        "clusters": list(data.clusters),
    }


def baselines(name: str, data: TaskData) -> list[Baseline]:
    """The scores of an answer without a model and of each method that learns without a neural network.

    The settings of a method are chosen on dev; on a tie the first ones are taken. The list is empty for a metric that
    an answer without a model does not have, such as the loss.

    Args:
        name: the task's name.
        data: the task.
    """
    task, config = data.task, data.task.config
    dev, test = (task.simplest(data.train, split) for split in (data.dev, data.test))
    if task.metric not in test:  # such as the loss, which no answer without a model has
        return []
    best: dict[str, tuple[Learned, dict[str, float]]] = {}
    sign = -1 if task.metric in config.lower_is_better else 1
    for each in task.baselines(data.train):
        scores = each.score(data.dev)
        known = best.get(each.method)
        if known is None or sign * scores[task.metric] > sign * known[1][task.metric]:
            best[each.method] = each, scores
    learned = [
        Baseline(task=name, kind="learned", name=method, dev=scores, test=each.score(data.test), chosen=each.chosen)
        for method, (each, scores) in best.items()
    ]
    return [Baseline(task=name, kind="simplest", name=config.simplest, dev=dev, test=test), *learned]
