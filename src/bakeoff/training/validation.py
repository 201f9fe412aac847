"""The loss on held-out text, always the same rows with the same masks."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.batching.batches import Batches
from bakeoff.corpus.mixture import MixedText
from bakeoff.corpus.split import Split
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.ops.linear_cross_entropy import rows_at_once
from bakeoff.resources.device import Placement

NO_TARGET = "none of the measured tokens is a target"
ALL_UNKNOWN = "every token of the text is unknown"


class HeldOut(NamedTuple):
    """Held-out text, and the batches of it that the loss is measured on."""

    text: Split | MixedText
    """The held-out text."""
    batches: Iterable[Batch]
    """The measured rows of the held-out text: all, or a part of them."""
    rows: Batches
    """What the rows were made by."""


@torch.no_grad()
def validate(
    module: PretrainingModel, held_out: HeldOut, placement: Placement, processes: Processes = ALONE
) -> dict[str, Any]:
    """Losses in nats per target, accuracies, and for token objectives perplexity and bits per byte.

    Bits per byte are the mean loss in bits times the text's tokens per byte of UTF-8. For a causal model that is its
    compression of the text; for a masked one it is the cost of its targets only, comparable between masked models of
    different tokenizers but not with causal ones. Bytes of characters that the tokenizer hides are left out. Each
    corpus of a mixture counts by its share, however few rows it has. `targets` is the number of targets of each
    objective; objectives whose weight is 0 are left out. A figure is None where it is no number: over no target, over a
    text of unknown tokens alone, or bits per byte of a text that is hidden in part; `no_number` has the reasons, by
    objective and for bits_per_byte, and `at_most` the objectives whose figures are bounds. Each of several processes
    reads its share of the batches.
    """
    was_training = module.training
    module.eval()
    state: ModelState | None = None
    trained = [objective.name for objective in module.objectives if module.weights[objective.name] > 0]
    sums = {name: torch.zeros(4, dtype=torch.float64) for name in trained}  # losses, hits, divisors, targets; counted
    counts = dict.fromkeys(sums, 0)
    shared = True
    for batch, counted in _own(held_out.batches, processes):
        shared = batch.advance is None
        moved = batch.to(placement.device)
        if batch.advance is not None and state is None:
            state = module.model.start(len(batch.row.ids))
        with placement.autocast():
            measured, state = module(moved, state, _loss_and_hits)
        for name, values in measured.items() if counted else ():
            if name not in sums:
                continue
            targets = len(batch.targets[name][0])
            divisors = torch.tensor([batch.count(name), targets], dtype=torch.float64)
            sums[name] += batch.counted * torch.cat([values.cpu().double(), divisors])
            counts[name] += targets
    module.train(was_training)
    if shared:
        sums, counts = _of_all(sums, counts, processes)
    tokens = [name for name in sums if module.predicts_tokens[name]]
    reasons = {name: NO_TARGET for name, count in counts.items() if not count}
    if held_out.text.all_unknown:
        reasons |= dict.fromkeys(tokens, ALL_UNKNOWN)
    means = {
        name: (loss / max(1.0, divisor), hits / max(1.0, targets))
        for name, (loss, hits, divisor, targets) in ((name, total.tolist()) for name, total in sums.items())
        if name not in reasons
    }
    token_losses = {name: means[name][0] if name in means else None for name in tokens}
    to_bits = {name: held_out.rows.targets_per_byte(name) / math.log(2) for name in tokens}
    no_bits = held_out.text.no_bits_per_byte
    if no_bits is not None and any(name in means for name in tokens):
        reasons["bits_per_byte"] = no_bits
    return {
        "loss": None if len(means) < len(sums) else sum(module.weights[name] * mean[0] for name, mean in means.items()),
        "losses": {name: means[name][0] if name in means else None for name in sums},
        "targets": counts,
        "accuracy": {name: means[name][1] if name in means else None for name in sums},
        "perplexity": {name: None if loss is None else math.exp(min(loss, 700)) for name, loss in token_losses.items()},
        "bits_per_byte": {
            name: None if loss is None or no_bits is not None else loss * to_bits[name]
            for name, loss in token_losses.items()
        },
        **({"at_most": bounds} if (bounds := [name for name in means if OBJECTIVES[name].bounds]) else {}),
        **({"no_number": reasons} if reasons else {}),
    }


def _own(batches: Iterable[Batch], processes: Processes) -> Iterator[tuple[Batch, bool]]:
    """This process's share of batches, and whether each counts; rows that continue each other are read by all.

    Where processes have to make the same number of passes, one that has no batch left reads one of the others'.
    """
    coming = iter(batches)
    while group := list(islice(coming, processes.size)):
        if group[0].advance is not None:
            yield from ((batch, True) for batch in group)
        elif processes.rank < len(group):
            yield group[processes.rank], True
        elif processes.shards:
            yield group[0], False


def _of_all(
    sums: dict[str, Tensor], counts: dict[str, int], processes: Processes
) -> tuple[dict[str, Tensor], dict[str, int]]:
    """The sums and counts of all processes."""
    values = iter(processes.sums([*torch.stack([*sums.values()]).flatten().tolist(), *counts.values()]))
    whole = {name: torch.tensor([next(values) for _ in total], dtype=torch.float64) for name, total in sums.items()}
    return whole, {name: int(next(values)) for name in counts}


def _loss_and_hits(head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """(2,) the summed loss, without smoothing or other terms of the training's, and the number of right predictions."""
    size, sums = rows_at_once(len(table)), torch.zeros(2, device=rows.device)
    weighed = torch.ones_like(labels, dtype=torch.float32) if weights is None else weights
    for some, right, weight in zip(rows.split(size), labels.split(size), weighed.split(size), strict=True):
        predicted = head.log_probabilities(some, table)
        hits = (predicted.argmax(-1) == right).sum()
        if weights is None:
            loss = F.nll_loss(predicted, right, reduction="sum")
        else:
            loss = (F.nll_loss(predicted, right, reduction="none") * weight).sum()
        sums += torch.stack([loss, hits.to(predicted.dtype)])
    return sums
