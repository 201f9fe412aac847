"""Predictions of a head to items, without gradients."""

from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.batching.by_length import sorted_batches
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.distributed.shards import put_together
from bakeoff.resources.device import Placement, autocast, tokens_at_once
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.task import Predictions, Task

EVALUATION_BATCH = 128
"""The most items of a batch where no gradients are needed."""

EVALUATION_TOKENS = 1 << 16
"""The most tokens of such a batch."""


def predictions_of(
    head: HeadedModel,
    items: Items,
    task: Task,
    format: InputFormat,
    placement: Placement,
    processes: Processes = ALONE,
    labelled: bool = False,
    in_training: bool = False,
) -> Predictions:
    """The predictions to the examples of items, and their mean loss where they are `labelled`.

    Of several processes each reads its share of the items, in the batches of a single one, and all get all predictions.
    Where they have divided the weights, each has them whole while texts are written.

    With `in_training`, at an evaluation on dev, the predictions hold no more than the metric needs.
    """
    was_training = head.training
    head.eval()
    # What is gathered of divided weights in this mode could not be trained with later.
    with torch.no_grad() if processes.shards else torch.inference_mode():
        with put_together(head) if processes.shards and task.config.head == "writing" else nullcontext():
            predictions = task.predict(head, items, format, placement, processes, in_training)
        if predictions is None:
            predictions = _by_numbers(head, items, task, format, placement, processes, labelled)
    head.train(was_training)
    return predictions


def _by_numbers(
    head: HeadedModel,
    items: Items,
    task: Task,
    format: InputFormat,
    placement: Placement,
    processes: Processes,
    labelled: bool,
) -> Predictions:
    tokens = tokens_at_once(placement.device, EVALUATION_TOKENS)
    batches = sorted_batches(items.lengths, tokens, EVALUATION_BATCH)
    if processes.shards:  # as many passes for all; what a batch gives twice is the same
        batches += [batches[0]] * (-len(batches) % processes.size)

    def of_batch(chosen: NDArray[np.int64]) -> dict[int, NDArray[np.float32]]:
        with autocast(placement.device, placement.precision):
            scores = head(task.collate(items, chosen, format).to(placement.device))
        return dict(zip(chosen.tolist(), task.read_outputs(scores, items, chosen), strict=True))

    outputs = processes.divided(batches, of_batch)
    complete = [outputs[item] for item in sorted(outputs)]
    return Predictions(task.decode(complete, items), task.mean_loss(complete, items) if labelled else None)
