"""Baselines of a task: an answer without a model, and the methods that learn without a neural network."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bakeoff.comparison.results import Baseline
from bakeoff.comparison.running.latency import medians, timer
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.task import Learned


class MeasuredBaseline(NamedTuple):
    """A baseline with what it says of every test row."""

    baseline: Baseline
    """The baseline's scores."""
    lines: list[dict[str, Any]]
    """(N,) its predictions, as lines of predictions.jsonl; empty: they are not known."""


def baselines(name: str, data: TaskData, batch: int = 1) -> list[MeasuredBaseline]:
    """The scores of an answer without a model and of each method that learns without a neural network.

    The settings of a method are chosen on dev; on a tie the first ones are taken. The list is empty for a metric that
    an answer without a model does not have, such as the loss.

    Args:
        name: the task's name.
        data: the task.
        batch: the number of test texts that are predicted at once where latency is measured.
    """
    task, config = data.task, data.task.config
    dev, test = (task.simplest(data.train, split) for split in (data.dev, data.test))
    if task.metric not in test:  # such as the loss, which no answer without a model has
        return []
    best: dict[str, tuple[Learned, dict[str, float]]] = {}
    sign = -1 if task.metric in config.lower_is_better else 1
    for each in task.baselines(data.train):
        scores = task.score(data.dev, each.predict(data.dev))
        known = best.get(each.method)
        if known is None or sign * scores[task.metric] > sign * known[1][task.metric]:
            best[each.method] = each, scores
    simplest = Baseline(task=name, kind="simplest", name=config.simplest, dev=dev, test=test)
    learned = [_learned(name, data, each, scores, batch) for each, scores in best.values()]
    return [MeasuredBaseline(simplest, task.simplest_lines(data.train, data.test)), *learned]


def _learned(name: str, data: TaskData, method: Learned, dev: dict[str, float], batch: int) -> MeasuredBaseline:
    predictions: Sequence[Any] = method.predict(data.test)
    baseline = Baseline(
        task=name,
        kind="learned",
        name=method.method,
        dev=dev,
        test=data.task.score(data.test, predictions),
        chosen=method.chosen,
        labels=data.task.score_labels(data.test, predictions),
        seconds=medians([timer(method.predict, data.test, batch)])[0],
    )
    lines = [data.task.line(*pair) for pair in zip(data.test, predictions, strict=True)]
    return MeasuredBaseline(baseline, lines)
