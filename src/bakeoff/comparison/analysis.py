"""The statistics of one task, from the predictions of its fine-tuned models."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.comparison.facts import SameAnswer, TaskFacts
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.results import Baseline, Initialisation, RecipeEntry
from bakeoff.comparison.statistics.against_baseline import against_baseline
from bakeoff.comparison.statistics.breakdown import Lines, TestRow, by_length, differing_rows, steadily_differing
from bakeoff.comparison.statistics.factors import factor_analyses
from bakeoff.comparison.statistics.families import TaskGroups, gain_pairs, trends
from bakeoff.comparison.statistics.groups import Group, moderate
from bakeoff.comparison.statistics.pairs import all_pairs, describe, gains
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.errors import UserError
from bakeoff.tasks.finetuned_run import read_predictions
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task_config import TaskConfig


def analyse(
    entries: list[RecipeEntry],
    task: TaskFacts,
    config: TaskConfig,
    clusters: Sequence[int],
    root: Path,
    baselines: Sequence[Baseline] = (),
    texts: Sequence[TestRow] = (),
    grids: Sequence[GridFacts] = (),
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
    asking: Asking = Asking(),
) -> tuple[Analysis, TaskGroups]:
    """The statistics of one task, and the scores that they are made of.

    Args:
        entries: the recipes with their scores.
        task: the facts of the task.
        config: the config of the same task, from the plan.
        clusters: the number of the cluster of each test row; empty: all rows are independent.
        root: the comparison's directory, to which the paths of files of predictions are relative.
        baselines: the baselines of all tasks.
        texts: the test rows; empty: not known.
        grids: the grids that recipes are cells of.
        orders: recipes in an order, by its name.
        asking: how the questions on recipes are asked.
    """
    together = np.array(clusters, np.intp) if clusters else None
    keys = [row.key for row in texts]
    groups: dict[Initialisation, dict[str, Group]] = {"pretrained": {}, "scratch": {}}
    same, right = [], list[Any]()
    kept: dict[str, dict[int, list[Lines]]] = {}
    near: dict[str, list[Vector]] = {}
    sign = -1 if task.lower_is_better else 1
    for entry, (start, of_start) in product(entries, groups.items()):
        runs: dict[int, list[tuple[float, Vector]]] = {}
        of_rows: dict[int, list[Vector]] = {}
        for score in entry.scores:
            if (score.task, score.initialisation) != (task.name, start):
                continue
            lines = _predictions(root / score.predictions, task, config)
            right = _right(root / score.predictions, lines, right)
            if (answer := same_answer(lines)) is not None:
                same.append(SameAnswer(recipe=entry.label, seed=score.seed, initialisation=start, answer=answer))
            values = _contributions(lines, task, config)
            runs.setdefault(score.seed, []).append((score.test[task.metric], values))
            if start == "pretrained":
                kept.setdefault(entry.label, {}).setdefault(score.seed, []).append(lines)
                of_rows.setdefault(score.seed, []).append(config.nearness(lines, task.metric))
        if runs:
            of_start[entry.label] = Group.of(runs, together, task.reach, keys)
            if start == "pretrained":
                near[entry.label] = [np.mean(nested, axis=0) for nested in of_rows.values()]
    pretrained, scratch = moderate(groups["pretrained"]), moderate(groups["scratch"])
    known = [each for each in baselines if each.task == task.name and each.predictions is not None]
    known.sort(key=lambda each: (-sign * each.test[task.metric], each.kind == "simplest"))
    best, learned = next(iter(known), None), next((each for each in known if each.kind == "learned"), None)
    simple = None if best is None else _predictions(root / str(best.predictions), task, config)
    counted = simple
    if learned is not best:
        counted = None if learned is None else _predictions(root / str(learned.predictions), task, config)
    characters = [row.characters for row in texts]
    chosen = steadily_differing(near) if texts else []
    analysis = Analysis(
        task=task.name,
        pretrained={label: describe(group) for label, group in pretrained.items()},
        scratch={label: describe(group) for label, group in scratch.items()},
        pairs=all_pairs(pretrained, task.lower_is_better, asking),
        scratch_pairs=all_pairs(scratch, task.lower_is_better, asking),
        gains=gains(pretrained, scratch, asking),
        gain_pairs=gain_pairs(pretrained, scratch, task.lower_is_better, asking),
        trends=trends(pretrained, orders, asking),
        factors=factor_analyses(grids, pretrained, task.lower_is_better, asking),
        against_baseline=(
            {}
            if best is None or simple is None
            else _against(best, simple, pretrained, task, config, together, asking.looks)
        ),
        by_length=by_length(characters, kept, counted, config, task.metric, together, task.reach),
        differing_rows=differing_rows(chosen, kept, texts),
        same_answers=same,
    )
    return analysis, TaskGroups(task, pretrained, scratch)


def _against(
    best: Baseline,
    lines: Lines,
    groups: Mapping[str, Group],
    task: TaskFacts,
    config: TaskConfig,
    clusters: NDArray[np.intp] | None,
    looks: int,
) -> dict[str, Difference]:
    """The differences of recipes from a baseline with these predictions."""
    values = _contributions(lines, task, config)
    return against_baseline(groups, best.name, best.test[task.metric], values, clusters, task.reach, looks)


def _contributions(lines: Lines, task: TaskFacts, config: TaskConfig) -> Vector:
    """(n,) what each row contributes to the task's metric; (0,) where this is not known."""
    values = config.contributions(lines, task.metric)
    return np.zeros(0) if values is None else values


def same_answer(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """The one answer that a model gives to all test rows; None: there are several, or one label is that of all."""
    items: list[tuple[Any, Any]] = [(each.get("label"), each.get("prediction")) for each in lines]
    if all(isinstance(one, list) and isinstance(other, list) and len(one) == len(other) for one, other in items):
        items = [pair for one, other in items for pair in zip(one, other, strict=True)]  # a tag for each word
    labels, answers = (
        list(dict.fromkeys(json.dumps(each, ensure_ascii=False) for each in side)) for side in zip(*items, strict=True)
    )
    if len(labels) == 1 or len(answers) > 1:
        return None
    answer = items[0][1]
    return answer if isinstance(answer, str) and answer else answers[0]


def _predictions(path: Path, task: TaskFacts, config: TaskConfig) -> list[dict[str, Any]]:
    """The predictions for the test rows, in the file's order.

    Raises:
        UserError: the file is damaged, or has another number of rows.
    """
    lines, rows = read_predictions(path, config.record), task.rows["test"]
    if len(lines) != rows:
        what = f"{path}: {len(lines)} predictions instead of {rows}"
        raise UserError(f"{what}; delete {path.parent} and compare again, or into another folder")
    return lines


def _right(path: Path, lines: Lines, before: list[Any]) -> list[Any]:
    """The right answer of each row, None where lines have no label; `before`: those of another run's, if any.

    Raises:
        UserError: the predictions are for other test rows than those of the other run.
    """
    right = [line.get("label") for line in lines]
    if before and right != before:
        why = "an older version may have held others out, or read labels otherwise"
        raise UserError(f"{path}: of other test rows than those of other runs; {why}: compare into another folder")
    return right
