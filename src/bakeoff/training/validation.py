"""The loss on held-out text, always the same rows with the same masks."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from bakeoff.batching.batch import Batch
from bakeoff.corpus.mixture import MixedText
from bakeoff.corpus.split import Split
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model_state import ModelState
from bakeoff.resources.device import Placement


class HeldOut(NamedTuple):
    """Held-out text, and the batches of it that the loss is measured on."""

    text: Split | MixedText
    """The held-out text."""
    batches: Iterable[Batch]
    """The measured rows of the held-out text: all, or a part of them."""


@torch.no_grad()
def validate(module: PretrainingModel, held_out: HeldOut, placement: Placement) -> dict[str, Any]:
    """Losses in nats per target, accuracies, and for token objectives perplexity and bits per byte.

    Bits per byte are the mean loss in bits times the text's tokens per byte of UTF-8. For a causal model that is its
    compression of the text; for a masked one it is the cost of its targets only, comparable between masked models of
    different tokenizers but not with causal ones. `targets` is the number of targets of each objective.
    """
    was_training = module.training
    module.eval()
    state: ModelState | None = None
    sums = {objective.name: torch.zeros(2, dtype=torch.float64) for objective in module.objectives}
    counts = dict.fromkeys(sums, 0)
    for batch in held_out.batches:
        moved = batch.to(placement.device)
        with placement.autocast():
            if batch.advance is None:
                gathered = module.gather(moved)
            else:
                gathered, state = module.gather_on(moved, state or module.model.start(len(batch.ids)))
            table = module.model.embedding.table
            predicted = {
                each.name: each.head.log_probabilities(gathered[each.name][0], table) for each in module.objectives
            }
        for name, (_, labels) in gathered.items():
            loss = F.nll_loss(predicted[name], labels, reduction="sum")
            correct = (predicted[name].argmax(-1) == labels).sum()
            sums[name] += torch.stack([loss.cpu().double(), correct.cpu().double()])
            counts[name] += len(labels)
    module.train(was_training)
    losses = {name: float(total[0]) / max(1, counts[name]) for name, total in sums.items()}
    token_losses = {name: loss for name, loss in losses.items() if module.predicts_tokens[name]}
    per_byte = held_out.text.tokens_per_byte
    return {
        "loss": sum(module.weights[name] * loss for name, loss in losses.items()),
        "losses": losses,
        "targets": counts,
        "accuracy": {name: float(total[1]) / max(1, counts[name]) for name, total in sums.items()},
        "perplexity": {name: math.exp(min(loss, 700.0)) for name, loss in token_losses.items()},
        "bits_per_byte": {name: loss / math.log(2) * per_byte for name, loss in token_losses.items()},
    }
