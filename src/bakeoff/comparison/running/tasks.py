"""The tasks of a comparison: their facts, and their baselines, the scores of methods without a neural network."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff import checksums
from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.results import Baseline
from bakeoff.comparison.running.baselines import baselines
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.statistics.breakdown import TestRow
from bakeoff.config import Record, differing
from bakeoff.display.wording import counted, quoted
from bakeoff.jobs.runner import Say
from bakeoff.json_files import json_lines, read_json, read_json_lines
from bakeoff.tasks.data import TaskData


class KeptTask(Record):
    """A task's facts and baselines, which one call of `compare` keeps in a file for the next."""

    settings: dict[str, Any]
    """The task's settings, with checksums of its files; other settings make the rest void."""
    circumstances: dict[str, Any]
    """The circumstances of the baselines' latencies, see `LatencyPlan.circumstances`; other ones make the rest void."""
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
    rows: dict[str, list[TestRow]]
    """The test rows, by the task's name."""


def read_tasks(
    tasks: dict[str, tuple[TaskPlan, dict[str, Any]]],
    corpus: Path,
    out: Path,
    circumstances: dict[str, Any],
    engine: Engine,
    say: Say,
) -> KnownTasks:
    """What is known of every task: measured, or kept by an earlier call for the very same rows.

    Args:
        tasks: each task with its settings, by name.
        corpus: the corpus of the pre-trainings.
        out: the comparison's directory.
        circumstances: those in which latencies are measured, see `LatencyPlan.circumstances`.
        engine: the engine, which reads tasks.
        say: a function that shows a line before a task is read.
    """
    known = KnownTasks([], [], {}, {})
    for name, (task, settings) in tasks.items():
        path = out / "baselines" / f"{directory_name(name)}.json"
        kept = read_json(path) if path.is_file() else {}
        now = {"settings": settings, "circumstances": circumstances}
        if kept.get("circumstances") is not None:  # else of a version that had none
            KeptTask.check(kept, str(path))
        rows = path.with_suffix(".rows.jsonl")
        known_before = kept.get("circumstances") is not None and rows.is_file()
        if not known_before or any(differing({key: kept[key] for key in now}, now)):
            say(f"reading {quoted(name)}; what is reached without a neural network")
            path.parent.mkdir(parents=True, exist_ok=True)
            data = engine.task(task)
            checksums.write(rows, json_lines(TestRow.of(each, task.data).model_dump() for each in data.test))
            kept = {**now, **_measured(task, data, corpus, out, circumstances["batch"], engine)}
            checksums.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        facts = TaskFacts.parse(kept["facts"], f"{path}: facts", strict=True)
        known.facts.append(facts)
        if task.point is None and (task.data.train_rows or 0) > facts.rows["train"]:
            asked, there = task.data.train_rows, counted(facts.rows["train"], "row")
            say(f"{quoted(name)}: train_rows is {asked:,}, more than there are: all {there} are learned from")
        known.baselines.extend(Baseline.parse(each, f"{path}: baselines", strict=True) for each in kept["baselines"])
        known.clusters[name] = kept["clusters"]
        known.rows[name] = [TestRow(**TestRow.check(each, str(rows))) for each in read_json_lines(rows)]
    return known


def _measured(task: TaskPlan, data: TaskData, corpus: Path, out: Path, batch: int, engine: Engine) -> dict[str, Any]:
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
    measured = []
    for baseline, lines in baselines(task.name, data, batch):
        if lines:
            file = f"baselines/{directory_name(task.name)}.{directory_name(baseline.name)}.jsonl"
            checksums.write(out / file, json_lines(lines))
            baseline = baseline.model_copy(update={"predictions": file})
        measured.append(baseline.model_dump(mode="json"))
    return {"facts": facts.model_dump(mode="json"), "baselines": measured, "clusters": list(data.clusters)}
