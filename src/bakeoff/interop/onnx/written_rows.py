"""Accuracy of int8 for models that generate text: the loss of known targets, and equal likeliest tokens.

Shapes: B batch, T length, U tokens of a source, N tokens of a target, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.graphs import Input
from bakeoff.interop.onnx.quantization import Accuracy, Feeds, Measure, agreement
from bakeoff.interop.onnx.writing_graphs import OfDecoder
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.writing import WritingFormat, WritingItems

Ids = NDArray[np.int64]


class WrittenRow(NamedTuple):
    """A target and the tokens before it."""

    source: Ids | None
    """(U,) tokens that an encoder reads; None: there is no encoder."""
    prompt: Ids
    """Tokens that the decoder reads before the target; they see each other in models that read prefixes."""
    target: Ids
    """(N,) tokens to be written."""


class EncoderDecoder:
    """An encoder and a decoder as one session, which reads sources and the beginnings of their targets.

    Args:
        encoder: an onnxruntime session.
        decoder: an onnxruntime session.
    """

    def __init__(self, encoder: Any, decoder: Any) -> None:
        self.encoder, self.decoder = encoder, decoder

    def run(self, names: list[str] | None, feeds: Feeds) -> list[NDArray[Any]]:
        """The decoder's outputs; `feeds` are the decoder's inputs and `source_ids` (B, U) without padding."""
        source = feeds["source_ids"]
        mask = np.ones_like(source)
        outputs = [each.name for each in self.encoder.get_outputs()]
        read = self.encoder.run(None, {"input_ids": source, "attention_mask": mask})
        more = {"encoder_attention_mask": mask, **dict(zip(outputs, read, strict=True))}
        rest = {name: value for name, value in feeds.items() if name != "source_ids"}
        decoded: list[NDArray[Any]] = self.decoder.run(names, {**rest, **more})
        return decoded


def open_all(files: Sequence[Path]) -> Any:
    """An onnxruntime session of one file, or an `EncoderDecoder` of two."""
    sessions = [open_session(file) for file in files]
    return sessions[0] if len(sessions) == 1 else EncoderDecoder(*sessions)


def empty(inputs: Sequence[Input], rows: int) -> dict[str, NDArray[Any]]:
    """The inputs of a decoder at the beginning of `rows` texts: no tokens before, and a state of zeros."""
    made: dict[str, NDArray[Any]] = {}
    for each in inputs:
        if each.name.startswith("past"):
            shape = [rows if axis == "batch" else 0 if axis == "past" else int(axis) for axis in each.axes]
            made[each.name] = np.zeros(shape, np.int64 if each.integer else np.float32)
    return made


def by_targets(graph: OfDecoder, rows: Sequence[WrittenRow], what: str, loss: bool) -> Measure:
    """A measure: the loss of targets in nats a token, and the share of equal likeliest tokens.

    Args:
        graph: the decoder's graph.
        rows: rows whose targets are scored.
        what: description of the rows, for the user.
        loss: whether to tell the loss, which means something for true targets alone.
    """
    count = sum(len(row.target) for row in rows)

    def measure(original: Any, session: Any) -> list[Accuracy]:
        losses, alike = np.zeros(2), 0.0
        for row in rows:
            both = [_scores(each, graph, row) for each in (original, session)]
            alike += len(row.target) * agreement(*both)
            losses += [_loss(each, row.target) for each in both]
        before, after = (losses / count).tolist()
        of_loss = [Accuracy(f"loss of a token of the targets in nats on {what}", before, after, lower_is_better=True)]
        return [*(of_loss if loss else []), Accuracy(f"same likeliest output on {what}", 1.0, alike / count)]

    return measure


def _scores(session: Any, graph: OfDecoder, row: WrittenRow) -> NDArray[np.float32]:
    """(N, V) logits at the tokens of a row's target."""
    ids = np.concatenate([row.prompt, row.target[:-1]])[None]
    source = {} if row.source is None else {"source_ids": row.source[None]}
    begun = empty(graph.inputs, 1)
    first = len(row.prompt)
    chunk = ids[:, :first] if graph.reads_prefix else ids
    logits, *after = session.run(None, {"input_ids": chunk, **begun, **source})
    if graph.reads_prefix and ids.shape[1] > first:
        names = [name for name in begun if name != "past_ids"]
        state = {"past_ids": chunk, **dict(zip(names, after, strict=True))}
        rest = session.run(["logits"], {"input_ids": ids[:, first:], **state})[0]
        logits = np.concatenate([logits, rest], axis=1)
    scores: NDArray[np.float32] = logits[0, first - 1 :]
    return scores


def _loss(scores: NDArray[np.float32], target: Ids) -> float:
    return float(torch.nn.functional.cross_entropy(torch.from_numpy(scores), torch.from_numpy(target), reduction="sum"))


def rows_of_task(run: FinetunedRun, path: Path) -> list[WrittenRow]:
    """The rows of a file of labelled examples.

    Raises:
        UserError: the file has a mistake.
    """
    examples, _ = run.labelled_examples(path)
    task, format = run.learned, run.format()
    items = task.encode(examples, format)
    assert isinstance(items, WritingItems)
    prompts, sources = WritingFormat(format, items.longest).prompts(items)
    optional_sources = [None] * len(prompts) if sources is None else sources
    return [
        WrittenRow(None if source is None else np.array(source, np.int64), np.array(prompt, np.int64), target)
        for source, prompt, target in zip(optional_sources, prompts, items.targets, strict=True)
    ]


def rows_of_ids(ids: Sequence[Ids], format: InputFormat, reads_prefix: bool) -> list[WrittenRow]:
    """Rows of texts without labels: a model with an encoder reads each text as source and as target, others as target.

    For a decoder that reads prefixes, the first half of a text is its prefix.
    """
    return list(_rows_of_ids(ids, format, reads_prefix))


def _rows_of_ids(ids: Sequence[Ids], format: InputFormat, reads_prefix: bool) -> Iterator[WrittenRow]:
    tokenizer = format.tokenizer
    for each in ids:
        tokens = each[: format.length - 2 - len(format.before_source)]
        begin = np.array(format.prompt if format.has_source else [tokenizer.opening], np.int64)
        if not len(tokens):
            continue
        if format.has_source:
            yield WrittenRow(np.array([*format.before_source, *tokens, tokenizer.separator], np.int64), begin, tokens)
        else:
            half = len(tokens) // 2 if reads_prefix else 0
            yield WrittenRow(None, np.concatenate([begin, tokens[:half]]), tokens[half:])
