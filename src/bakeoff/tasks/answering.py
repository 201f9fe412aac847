"""What a head says of items, without gradients."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.resources.device import Placement, autocast
from bakeoff.tasks.batches import collate, sorted_batches
from bakeoff.tasks.heads import Head
from bakeoff.tasks.inputs import InputFormat
from bakeoff.tasks.task import Items, Task

EVALUATION_BATCH = 128
"""Items of a batch where no gradients are needed."""


class Answers(NamedTuple):
    """What a task makes of what a head says of N examples."""

    answers: list[Any]
    """(N,) the answers, in the order of the examples."""
    loss: float | None
    """Mean loss of the items, where all have labels."""


@torch.inference_mode()
def answers_of(
    head: Head, items: Items, task: Task, format: InputFormat, placement: Placement, labelled: bool = False
) -> Answers:
    """The answers to items' examples, and the mean loss where they have labels."""
    was_training = head.training
    head.eval()
    outputs: list[NDArray[np.float32] | None] = [None] * len(items.owners)
    for chosen in sorted_batches(items.lengths, EVALUATION_BATCH):
        with autocast(placement.device, placement.precision):
            scores = head(collate(items.encoded, items.rows(chosen), format).to(placement.device))
        for item, own in zip(chosen, task.read_outputs(scores, items, chosen), strict=True):
            outputs[item] = own
    head.train(was_training)
    found = [own for own in outputs if own is not None]
    return Answers(task.decode(found, items), task.mean_loss(found, items) if labelled else None)
