"""Measurement of the latency of a comparison's fine-tuned models, once on each machine."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bakeoff.comparison.latency import Latency, LatencyPlan
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.kept import digest_of, read_kept, write_kept
from bakeoff.comparison.running.planned import PlannedFinetuning, PlannedTrainings
from bakeoff.display.wording import counted, quoted
from bakeoff.jobs.runner import Say
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items

LATENCY = "latency.json"
"""The file in a comparison's directory with the measured latencies."""

SECONDS = 1.0
"""Seconds of measurement for each model."""

WARM_UP = 2
"""Calls before the measurement: the first ones allocate memory and load libraries."""

AT_ONCE = 8
"""The most models in memory at once; they take turns, so that other work of the machine slows them all."""


class Latencies:
    """The latencies of a comparison, kept in `latency.json`.

    Args:
        asked: the texts to measure on.
        out: the comparison's directory.
        engine: the engine, which measures.
        say: a function that shows a line before the models of a task are measured.
    """

    def __init__(self, asked: LatencyPlan, out: Path, engine: Engine, say: Say) -> None:
        self.asked, self.path, self.engine, self.say = asked, out / LATENCY, engine, say

    def of(self, planned: PlannedTrainings, without: Collection[str], circumstances: dict[str, Any]) -> list[Latency]:
        """The latency of every recipe on every task, measured where no earlier call has done it.

        Args:
            planned: the trainings, all of which have finished.
            without: labels of recipes that are left out.
            circumstances: see `LatencyPlan.circumstances`.
        """
        kept = read_kept(self.path, circumstances, Latency)
        known = {(each.recipe, each.task): each for each in kept}
        models = {key: training for key, training in _models(planned).items() if key[0] not in without}
        latencies = {
            key: known[key]
            for key, training in models.items()
            if key in known and known[key].trained == digest_of(training)
        }
        for task in planned.plan.tasks:
            missing = [key for key in models if key[1] == task.name and key not in latencies]
            if missing:
                number = counted(len(missing), "fine-tuned model")
                self.say(f"measuring the latency of {number} on {quoted(task.name)}")
            for begin in range(0, len(missing), AT_ONCE):
                keys = missing[begin : begin + AT_ONCE]
                folders = [models[key].directory for key in keys]
                measured = self.engine.latencies(folders, task, self.asked, planned.plan.device)
                for key, (seconds, parameters) in zip(keys, measured, strict=True):
                    trained = digest_of(models[key])
                    latencies[key] = Latency(
                        recipe=key[0], task=key[1], seconds=seconds, parameters=parameters, trained=trained
                    )
        ordered = [latencies[key] for key in models]
        if ordered != kept:
            write_kept(self.path, circumstances, ordered)
        return ordered


def _models(planned: PlannedTrainings) -> Mapping[tuple[str, str], PlannedFinetuning]:
    """The fine-tuning whose model is measured, by recipe and task: the first with pre-trained weights."""
    models: dict[tuple[str, str], PlannedFinetuning] = {}
    for each in planned.all():
        if isinstance(each, PlannedFinetuning) and each.initialisation == "pretrained":
            models.setdefault((each.recipe.name, each.task.name), each)
    return models


def timer(predict: Callable[[Sequence[Any]], Any], examples: Sequence[Any], batch: int) -> Callable[[int], float]:
    """A function that predicts the batch of a turn, and returns the seconds; every model has the same batches."""

    def call(turn: int) -> float:
        chosen = [examples[(turn * batch + index) % len(examples)] for index in range(batch)]
        began = time.perf_counter()
        predict(chosen)
        return time.perf_counter() - began

    for _ in range(WARM_UP):
        call(0)
    return call


def medians(calls: Sequence[Callable[[int], float]]) -> list[float]:
    """The median seconds of each call, which take turns."""
    from bakeoff.training.speed import medians_in_turns

    return medians_in_turns(calls, SECONDS)


def measure(
    folders: Sequence[Path], examples: Sequence[Any], asked: LatencyPlan, device: str
) -> list[tuple[float, int]]:
    """Median seconds and parameters of fine-tuned runs, which take turns at the same batches of test examples."""
    from bakeoff.resources.device import Placement, resolve_device

    placement = Placement(resolve_device(device), "float32")  # as `predict` has it
    calls, parameters = [], []
    for folder in folders:
        run = FinetunedRun.open(folder)
        head, task, format = run.load(placement.device), run.learned, run.format(asked.length)
        parameters.append(sum(each.numel() for each in head.parameters()))

        def predict(chosen: Sequence[Any], head: Any = head, task: Any = task, format: InputFormat = format) -> Any:
            items = _lengthened(task.encode(chosen, format), asked.length)
            return predictions_of(head, items, task, format, placement)

        calls.append(timer(predict, examples, asked.batch))
    return list(zip(medians(calls), parameters, strict=True))


def _lengthened(items: Items, length: int | None) -> Items:
    """The items with rows of exactly `length` tokens, the shorter ones repeated; None: as they are."""
    if length is None:
        return items
    rows = items.encoded
    return replace(items, encoded=replace(rows, ids=[np.resize(ids, length) for ids in rows.ids]))
