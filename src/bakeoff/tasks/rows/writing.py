"""Sources and targets as rows of token ids, in the way in which pre-training showed them, and batches of them.

Shapes: R rows, B rows of a batch, T length, U length of the source, N tokens that are predicted, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.inputs import Source
from bakeoff.reading.aligned import clean
from bakeoff.tasks.items import Items
from bakeoff.tasks.rows.batches import MULTIPLE
from bakeoff.tasks.rows.inputs import SHORTEST, EncodedRows, InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer

LOOKED_AT = 1000
"""Targets of a split that are decoded again, to see whether the tokenizer can write them."""


class WritingBatch(NamedTuple):
    """Rows for a model that writes."""

    ids: Tensor
    """(B, T) what it reads: a start token, or the prompt, and behind it the target but for its last token."""
    real: Tensor | None
    """(B, T) True for tokens, False for padding; None where there is no padding."""
    source: Source | None
    """(B, U) what the encoder reads, where there is one."""
    prompt: Tensor
    """(B,) tokens of each row before the target's first: what is seen from both sides, where a model has learnt to."""
    places: Tensor
    """(N,) where targets are predicted, in the hidden states flattened to (B * T, D)."""

    def to(self, device: torch.device) -> "WritingBatch":
        """The batch on a device."""
        source = None if self.source is None else Source(*(_moved(part, device) for part in self.source))  # type: ignore[arg-type]
        real = _moved(self.real, device)
        return WritingBatch(self.ids.to(device), real, source, self.prompt.to(device), self.places.to(device))


def _moved(part: Tensor | None, device: torch.device) -> Tensor | None:
    return None if part is None else part.to(device)


@dataclass(frozen=True, kw_only=True)
class WritingItems(Items):
    """Sources as rows, and as target of each item the (length,) ids of its target, the end included, or None."""

    room: int
    """The most tokens of a source."""
    sources_cut: int
    """Sources that had more."""
    longest: int
    """The most tokens of a target, its end included."""
    targets_cut: int
    """Targets that had more; they have no end."""
    unknown: int
    """Targets in which a token stands for something that the vocabulary lacks."""
    looked_at: int
    """Targets that were decoded again."""
    changed: list[tuple[str, str]]
    """Decoded targets that differ from the original: the original, and the decoded text."""

    @property
    @override
    def lengths(self) -> NDArray[np.int64]:
        """(R,) tokens of each source and its target."""
        return self.encoded.lengths + np.array([0 if own is None else len(own) for own in self.targets], np.int64)


class WritingFormat:
    """What a model reads of a source and writes of a target.

    With an encoder: it reads A [SEP], the decoder [CLS] B and writes B [SEP], as all objectives of such models have it
    whose `decoder_begins` and `source_start` do not say otherwise.
    A decoder alone reads [SEP] A [SEP] B, as documents begin, and writes B [SEP].

    Args:
        format: the rows' format, whose length bounds a source, a target, and what a decoder alone reads of both.
        longest: the most tokens of a target, its end included; less where rows are shorter: a decoder alone leaves the
            source half of them.
    """

    def __init__(self, format: InputFormat, longest: int) -> None:
        self.format, self.tokenizer = format, format.tokenizer
        self.has_source = format.has_source
        most = format.length + 1 - len(format.prompt) if self.has_source else format.length // 2
        self.longest = min(longest, most)
        own = 1 + len(format.before_source)
        self.room = format.length - own if self.has_source else format.length - 2 - (self.longest - 1)
        if self.room < SHORTEST // 2:
            raise UserError(f"longest: {longest} tokens leave no room for a source in rows of {format.length}")

    def encode(self, sources: Sequence[str], targets: Sequence[str | None]) -> WritingItems:
        """The items of (R,) sources, and of their targets as far as these are known."""
        tokenizer = self.tokenizer
        given = [ids for ids, _ in tokenizer.encode([clean(text) for text in sources])]
        before = self.format.before_source if self.has_source else [tokenizer.opening]
        rows = [np.array([*before, *ids[: self.room], tokenizer.separator], np.int64) for ids in given]
        lengths = np.array([len(row) for row in rows], np.int64)
        known = [clean(text) for text in targets if text is not None]
        written = _targets(known, tokenizer)
        decoded = [clean(tokenizer.decode(ids)) for ids in written[:LOOKED_AT]]
        ended = iter([np.append(ids, tokenizer.separator)[: self.longest] for ids in written])
        own = [None if text is None else next(ended) for text in targets]
        return WritingItems(
            EncodedRows(rows, lengths, 0),
            np.arange(len(rows) + 1),
            np.arange(len(rows)),
            own,
            room=self.room,
            sources_cut=sum(len(ids) > self.room for ids in given),
            longest=self.longest,
            targets_cut=sum(len(ids) >= self.longest for ids in written),
            unknown=sum(bool(np.isin(ids, tokenizer.special_ids).any()) for ids in written),
            looked_at=min(len(known), LOOKED_AT),
            changed=[(text, back) for text, back in zip(known, decoded, strict=False) if text != back],
        )

    def prompts(self, items: Items) -> tuple[list[list[int]], list[list[int]] | None]:
        """The beginning that the decoder reads for each item, and the encoder's source, if there is an encoder."""
        rows = [row.tolist() for row in items.encoded.ids]
        return ([self.format.prompt] * len(rows), rows) if self.has_source else (rows, None)


def _targets(texts: list[str], tokenizer: Tokenizer) -> list[NDArray[np.int64]]:
    if not texts:
        return []
    ids, _, lengths = tokenizer.encode_targets(texts)
    return np.split(ids.astype(np.int64), np.cumsum(lengths)[:-1])


def collate_targets(items: Items, chosen: NDArray[np.int64], format: InputFormat) -> WritingBatch:
    """Some items whose targets are known, padded to the longest of them, which is rounded up."""
    targets = [items.targets[item] for item in chosen]
    sources = [items.encoded.ids[item] for item in chosen]
    prompts = [np.array(format.prompt)] * len(targets) if format.has_source else sources
    rows = [np.concatenate([prompt, own[:-1]]) for prompt, own in zip(prompts, targets, strict=True)]
    ids, real = padded(rows, format.pad)
    width = ids.shape[1]
    before = np.array([len(prompt) for prompt in prompts])
    places = [
        number * width + first - 1 + np.arange(len(own))
        for number, (first, own) in enumerate(zip(before, targets, strict=True))
    ]
    source = Source(*padded(sources, format.pad)) if format.has_source else None
    return WritingBatch(ids, real, source, torch.from_numpy(before), torch.from_numpy(np.concatenate(places)))


def padded(rows: Sequence[NDArray[np.int64]], pad: int) -> tuple[Tensor, Tensor | None]:
    """(B, T) rows, and (B, T) True for their tokens; None where there is no padding."""
    lengths = np.array([len(row) for row in rows])
    width = -(-int(lengths.max()) // MULTIPLE) * MULTIPLE
    if (lengths == lengths[0]).all():
        width = int(lengths[0])
    ids = np.full((len(rows), width), pad, np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    real = np.arange(width) < lengths[:, None]
    return torch.from_numpy(ids), None if real.all() else torch.from_numpy(real)
