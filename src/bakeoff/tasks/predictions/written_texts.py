"""Texts that a model writes for sources, and the probabilities of the target texts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.distributed.processes import Processes
from bakeoff.generation.config import GenerationConfig
from bakeoff.lengths import by_length
from bakeoff.reading.aligned import clean
from bakeoff.resources.device import Placement, autocast
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.writing import WritingFormat, collate_targets

SCORES_AT_ONCE = 1 << 24
"""The most scores of tokens in memory where no gradients are needed; they take 64 MB, and as much again."""


class WrittenText(NamedTuple):
    """The text that a model writes for a source, and the loss of the target."""

    text: str | None
    """The written text, in NFC, runs of white space as one space; None where no text was asked for."""
    log_probability: float | None
    """The log-probability of the text with its end, in nats."""
    target_loss: float | None
    """The negative log-probability of the target, its end included, where there is one."""
    target_tokens: int
    """The number of tokens of the target, its end included."""


def loss_of_a_token(predictions: Sequence[WrittenText]) -> float:
    """The mean loss of a token, over the tokens of all targets together, in nats."""
    return sum(each.target_loss or 0.0 for each in predictions) / max(
        1, sum(each.target_tokens for each in predictions)
    )


def joined_targets(items: Items, chosen: NDArray[np.int64]) -> Tensor:
    """(N,) the tokens of the targets of some items, one target after the other."""
    return torch.from_numpy(np.concatenate([items.targets[item] for item in chosen]))


def of_targets(scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
    """(tokens of the target,) log-probabilities of the target's tokens for each of some items, from (N, V) scores."""
    labels = joined_targets(items, chosen).to(scores.device)
    log_probabilities = scores.float().log_softmax(-1).gather(1, labels[:, None])[:, 0].cpu().numpy()
    return np.split(log_probabilities, np.cumsum([len(items.targets[item]) for item in chosen])[:-1])


@torch.inference_mode()
def of_all_targets(
    head: WritingHead, items: Items, format: InputFormat, placement: Placement, processes: Processes
) -> list[NDArray[np.float32]]:
    """The log-probabilities of `of_targets` for all items, in batches of similar length."""
    order, batches = by_length(items.lengths), list[NDArray[np.int64]]()
    most = max(1, SCORES_AT_ONCE // head.model.vocabulary)  # tokens
    tokens = np.array([len(items.targets[item]) for item in order])
    while len(order):
        count = max(1, int(np.searchsorted(np.cumsum(tokens), most, side="right")))
        batches.append(order[:count])
        order, tokens = order[count:], tokens[count:]

    def of_batch(chosen: NDArray[np.int64]) -> dict[int, NDArray[np.float32]]:
        with autocast(placement.device, placement.precision):
            scores = head(collate_targets(items, chosen, format).to(placement.device))
        return dict(zip(chosen.tolist(), of_targets(scores, items, chosen), strict=True))

    outputs = processes.divided(batches, of_batch)
    return [outputs[item] for item in range(len(outputs))]


def with_texts(
    predictions: Sequence[WrittenText],
    head: WritingHead,
    items: Items,
    rows: WritingFormat,
    config: GenerationConfig,
    placement: Placement,
    processes: Processes,
) -> list[WrittenText]:
    """The predictions with the texts that the model writes for the items."""
    prompts, sources = rows.prompts(items)
    with autocast(placement.device, placement.precision):
        written = head.write(prompts, sources, rows.tokenizer, config, processes)
    texts = [clean(rows.tokenizer.decode(each.ids)) for each in written]
    pairs = zip(predictions, texts, written, strict=True)
    return [prediction._replace(text=text, log_probability=each.log_probability) for prediction, text, each in pairs]
