"""Accuracy of int8 against float32: the task's metric on labelled rows, the loss on texts, equal likeliest outputs.

Shapes: B batch, T length, V vocabulary, K outputs of a token or a row, N targets.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.interop.onnx.conversion import drawn
from bakeoff.interop.onnx.graphs import Graph, OfEncoder
from bakeoff.interop.onnx.quantization import Accuracy, Feeds, Measure, agreement
from bakeoff.interop.onnx.writing_graphs import OfDecoder
from bakeoff.lengths import by_length, padded
from bakeoff.reading.text_files import TextFile
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer

MOST_TEXTS = 2000
"""Number of texts that are read from a file at most."""
ROWS_AT_ONCE = 16
"""Number of rows in a batch."""
HIDDEN = 0.15
"""Share of tokens that are masked to measure the loss of masked language modelling, as in BERT."""


def by_metric(run: FinetunedRun, path: Path) -> Measure:
    """A measure: the task's metric on a file of labelled rows.

    Raises:
        UserError: the file has a mistake.
    """
    examples, _ = run.labelled_examples(path)
    task, format = run.learned, run.format()
    items = task.encode(examples, format)
    lower = task.metric in task.config.lower_is_better

    def measure(original: Any, session: Any) -> list[Accuracy]:
        on = Placement(torch.device("cpu"), "float32")
        before, after = (
            task.score(examples, predictions_of(OnnxHead(each), items, task, format, on).predictions)[task.metric]
            for each in (original, session)
        )
        name = f"{task.config.described(task.metric).title} on {len(examples):,} rows of {path.name}"
        return [Accuracy(name, before, after, lower)]

    return measure


def by_loss(graph: Graph, batches: list[Feeds], tokenizer: Tokenizer, file: str) -> Measure:
    """A measure: the loss on rows of text in nats a target, and the agreement on the same rows.

    A decoder's targets are all next tokens. A masked language model's targets are 15 % of the tokens, masked alike for
    both models. Any other encoder has agreement alone.

    Raises:
        UserError: the texts have no token to predict.
    """
    draw, targets = np.random.default_rng(3), list[NDArray[np.int64]]()
    agreeing = by_agreement(graph, batches, f"the texts of {file}")
    if not isinstance(graph, OfDecoder) and not (isinstance(graph, OfEncoder) and graph.fills):
        return agreeing
    asked: list[Feeds] = []
    for feeds in batches:
        ids = feeds["input_ids"]
        if isinstance(graph, OfDecoder):
            wanted = np.full_like(ids, -1)
            wanted[:, :-1] = ids[:, 1:]
            asked.append(feeds)
        else:
            chosen = (draw.random(ids.shape) < HIDDEN) & ~np.isin(ids, tokenizer.special_ids)
            wanted = np.where(chosen, ids, -1)
            asked.append({**feeds, "input_ids": np.where(chosen, tokenizer.mask, ids)})
        targets.append(wanted)
    count = sum(int((each >= 0).sum()) for each in targets)
    if not count:
        raise UserError(f"{file}: its texts are too short to measure a loss on")
    learnt = "of the next token" if isinstance(graph, OfDecoder) else "of hidden tokens"
    name = f"loss {learnt} in nats on the texts of {file} ({count:,} targets)"

    def measure(original: Any, session: Any) -> list[Accuracy]:
        both = []
        for each in (original, session):
            total = 0.0
            for feeds, wanted in zip(asked, targets, strict=True):
                logits = torch.from_numpy(each.run(["logits"], dict(feeds))[0]).flatten(0, 1)
                total += float(
                    torch.nn.functional.cross_entropy(
                        logits, torch.from_numpy(wanted).flatten(), ignore_index=-1, reduction="sum"
                    )
                )
            both.append(total / count)
        return [Accuracy(name, both[0], both[1], lower_is_better=True), *agreeing(original, session)]

    return measure


def by_agreement(graph: Graph, batches: list[Feeds], what: str) -> Measure:
    """A measure: the share of tokens or rows whose likeliest output both models share; `what` names the rows."""
    names = [name for name, _ in graph.outputs]
    wanted = "logits" if "logits" in names else names[0]

    def measure(original: Any, session: Any) -> list[Accuracy]:
        shares, counts = [], []
        for feeds in batches:
            one, other = (each.run([wanted], dict(feeds))[0] for each in (original, session))
            if one.ndim == 3 and "attention_mask" in feeds:
                kept = feeds["attention_mask"].astype(bool)
                one, other = one[kept], other[kept]
            one, other = one.reshape(-1, one.shape[-1]), other.reshape(-1, other.shape[-1])
            shares.append(agreement(one, other))
            counts.append(len(one))
        return [Accuracy(f"same likeliest output on {what}", 1.0, float(np.average(shares, weights=counts)))]

    return measure


def texts_of(file: Path) -> list[str]:
    """The first texts of a file, at most MOST_TEXTS.

    Raises:
        UserError: there is no such file, or no text in it.
    """
    texts = []
    for (text,) in TextFile(file, ["text"], options=()):
        if text.strip():
            texts.append(text)
        if len(texts) == MOST_TEXTS:
            break
    if not texts:
        raise UserError(f"{file}: holds no text")
    return texts


def rows_of(graph: Graph, file: Path, format: InputFormat) -> list[Feeds]:
    """Batches of a graph's inputs for the texts of a file, in the order of their lengths.

    Raises:
        UserError: there is no such file, or no text in it.
    """
    texts = texts_of(file)
    encoded = format.framed(format.ids(texts))
    batches: list[Feeds] = []
    order = by_length(encoded.lengths)
    whole = all(each.name != "attention_mask" for each in graph.inputs)
    for first in range(0, len(order), 1 if whole else ROWS_AT_ONCE):  # without a mask there is no padding
        rows = [encoded.ids[row] for row in order[first : first + (1 if whole else ROWS_AT_ONCE)]]
        ids, padding_mask = padded(rows, format.pad)
        mask = np.ones(ids.shape, np.int64) if padding_mask is None else padding_mask.numpy().astype(np.int64)
        batches.append(_feeds(graph, ids.numpy(), mask))
    return batches


def random_rows(graph: Graph, vocabulary: int, longest: int, rows: int = 64) -> list[Feeds]:
    """Batches of a graph's inputs for random tokens, at most 128 a row."""
    draw, batches = np.random.default_rng(2), []
    for _ in range(0, rows, ROWS_AT_ONCE):
        sizes = {"batch": ROWS_AT_ONCE, "length": min(128, longest), "past": 0}
        tensors = drawn(graph.inputs, sizes, vocabulary, draw)
        ids = tensors[0].numpy()
        batches.append(_feeds(graph, ids, np.ones_like(ids)))
    return batches


def _feeds(graph: Graph, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Feeds:
    """A graph's inputs for (B, T) rows that begin a text."""
    made: dict[str, NDArray[Any]] = {}
    for each in graph.inputs:
        shape = [len(ids) if axis == "batch" else 0 if axis == "past" else axis for axis in each.axes]
        if each.name in ("input_ids", "attention_mask"):
            made[each.name] = ids if each.name == "input_ids" else mask
        else:
            made[each.name] = np.zeros_like(ids) if each.integer else np.zeros(shape, np.float32)  # type: ignore[arg-type]
    return made


class OnnxHead(HeadedModel):
    """Logits of a batch by onnxruntime: (B, K) of rows, or (B, T, K) of tokens.

    Args:
        session: an onnxruntime session.
    """

    def __init__(self, session: Any) -> None:
        torch.nn.Module.__init__(self)  # it has no model of its own
        self.session = session
        self.names = {each.name for each in session.get_inputs()}

    @override
    def forward(self, batch: Row[Tensor]) -> Tensor:
        """The logits, float32."""
        ids = batch.ids.numpy()
        padding_mask = np.ones_like(ids) if batch.padding_mask is None else batch.padding_mask.numpy().astype(np.int64)
        segments = np.zeros_like(ids) if batch.segments is None else batch.segments.numpy()
        feeds = {"input_ids": ids, "attention_mask": padding_mask, "token_type_ids": segments}
        logits = self.session.run(["logits"], {name: feeds[name] for name in self.names})
        return torch.from_numpy(logits[0])
