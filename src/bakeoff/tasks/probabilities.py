"""What a classifier says about rows, without gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from bakeoff.resources.device import autocast
from bakeoff.tasks.batches import collate, sorted_batches
from bakeoff.tasks.classification import Classifier
from bakeoff.tasks.inputs import EncodedRows, InputFormat

EVALUATION_BATCH = 128
"""Rows of a batch where no gradients are needed."""


class Predictions(NamedTuple):
    """What a classifier says about N rows."""

    probabilities: NDArray[np.float32]
    """(N, C) probability of each class, in the order of the rows."""
    loss: float | None
    """Mean cross-entropy in nats, where labels were given."""

    @property
    def classes(self) -> list[int]:
        """(N,) the most probable class of each row."""
        return [int(place) for place in self.probabilities.argmax(1)]


@torch.inference_mode()
def class_probabilities(
    classifier: Classifier,
    encoded: EncodedRows,
    format: InputFormat,
    device: torch.device,
    precision: str,
    labels: Sequence[int] | None = None,
) -> Predictions:
    """Probabilities of the classes for encoded rows, and the mean loss where there are labels."""
    was_training = classifier.training
    classifier.eval()
    parts, order = [], sorted_batches(encoded.lengths, EVALUATION_BATCH)
    for rows in order:
        with autocast(device, precision):
            parts.append(classifier(collate(encoded, rows, format).to(device)).log_softmax(-1).cpu())
    classifier.train(was_training)
    log_probabilities = torch.cat(parts)[torch.from_numpy(np.argsort(np.concatenate(order)))]  # (N, C)
    loss = None if labels is None else float(F.nll_loss(log_probabilities, torch.tensor(labels)))
    return Predictions(log_probabilities.exp().numpy(), loss)
