"""Sources and targets as rows of token ids, in the form that pre-training gave them, and batches of these rows.

Shapes: R rows, B rows of a batch, T length, U length of the source, N tokens that are predicted, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.lengths import padded
from bakeoff.machine.transfer import sent
from bakeoff.reading.aligned import clean
from bakeoff.row import Source, mapped
from bakeoff.tasks.rows.batches import MULTIPLE
from bakeoff.tasks.rows.inputs import SHORTEST, EncodedRows, InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tokenizer.tokenizer import Tokenizer

LOOKED_AT = 1000
"""The number of a split's targets that are decoded again, to see whether the tokenizer can write them."""


class WritingBatch(NamedTuple):
    """A batch of rows for a model that writes."""

    ids: Tensor
    """(B, T) token ids that the decoder reads: the prompt (without an encoder: the source), and after it the target
    without its last token."""
    padding_mask: Tensor | None
    """(B, T) the padding mask: True for tokens, False for padding; None where there is no padding."""
    source: Source[Tensor] | None
    """The (B, U) sources that the encoder reads; None where there is no encoder."""
    prompt: Tensor
    """(B,) the number of tokens before each row's target, which a model that has learnt prefixes reads in both
    directions."""
    positions: Tensor
    """(N,) the positions from which targets are predicted, in the hidden states flattened to (B * T, D)."""

    def to(self, device: torch.device) -> "WritingBatch":
        """The batch on a device."""
        source = None if self.source is None else mapped(self.source, lambda part: sent(part, device))
        padding_mask = _moved(self.padding_mask, device)
        ids, prompt, positions = (sent(part, device) for part in (self.ids, self.prompt, self.positions))
        return WritingBatch(ids, padding_mask, source, prompt, positions)


def _moved(part: Tensor | None, device: torch.device) -> Tensor | None:
    return None if part is None else sent(part, device)


@dataclass(frozen=True, kw_only=True)
class WritingItems(Items):
    """Sources as rows; the target of each item is the (length,) ids of its target, the end included, or None."""

    room: int
    """The most tokens of a source."""
    sources_cut: int
    """The number of sources that were longer, and were cut."""
    longest: int
    """The most tokens of a target, its end included."""
    targets_cut: int
    """The number of targets that were longer, and were cut; they have no end."""
    unknown: int
    """The number of targets in which a token stands for text that the vocabulary lacks."""
    looked_at: int
    """The number of targets that were decoded again."""
    changed: list[tuple[str, str]]
    """The targets that decoding changed, those with unknown text left out: the original, and the decoded text."""

    @property
    @override
    def lengths(self) -> NDArray[np.int64]:
        """(R,) the number of tokens of each source together with its target."""
        targets = [0 if target is None else len(target) for target in self.targets]
        return self.encoded.lengths + np.array(targets, np.int64)

    def remarks(self) -> Iterator[str]:
        """Remarks on sources and targets that were cut or cannot be written."""
        rows = len(self.owners)
        counts = {
            f"sources were cut to {self.room} tokens": self.sources_cut,
            f"targets were cut to {self.longest} tokens, and have no end": self.targets_cut,
            "targets hold what is unknown to the tokenizer, so that it cannot write them": self.unknown,
        }
        yield from (f"{count:,} of the {rows:,} {text}" for text, count in counts.items() if count)
        if self.changed:
            text, back = self.changed[0]
            first = "first " if self.looked_at < rows else ""
            bound = "exact stays 0, and BLEU below 1" if len(self.changed) == rows else "exact and BLEU stay below 1"
            yield (
                f"{len(self.changed):,} of the {first}{self.looked_at:,} targets can be written with other spaces, "
                f"case or signs only, such as '{back[:60]}' for '{text[:60]}': {bound}"
            )


class WritingFormat:
    """The rows of a model that writes: the source that it reads, and the target that it writes.

    With an encoder, the encoder reads A [SEP], and the decoder reads [CLS] B and writes B [SEP], unless the objective's
    `source_start` and `decoder_begins` say otherwise. A decoder alone reads [SEP] A [SEP] B, as documents begin, and
    writes B [SEP].

    Args:
        format: the format of the rows; its length bounds a source, a target, and the row of a decoder alone, which
            holds both.
        longest: the most tokens of a target, its end included; fewer where rows are shorter: a decoder alone leaves
            half of its row to the source.
    """

    def __init__(self, format: InputFormat, longest: int) -> None:
        self.format, self.tokenizer = format, format.tokenizer
        self.has_source = format.has_source
        most = format.length + 1 - len(format.prompt) if self.has_source else format.length // 2
        self.longest = min(longest, most)
        framing = 1 + len(format.before_source)
        self.room = format.length - framing if self.has_source else format.length - 2 - (self.longest - 1)
        if self.room < SHORTEST // 2:
            raise UserError(f"longest: {longest} tokens leave no room for a source in rows of {format.length}")

    @property
    def longest_source(self) -> int:
        """The most tokens of a source with those that stand around it."""
        return self.room + (1 + len(self.format.before_source) if self.has_source else 2)

    def encode(self, sources: Sequence[str], targets: Sequence[str | None]) -> WritingItems:
        """The items of (R,) sources, with the targets that are known."""
        tokenizer = self.tokenizer
        source_ids = [ids for ids, _ in tokenizer.encode([clean(text) for text in sources])]
        before = self.format.before_source if self.has_source else [tokenizer.opening]
        rows = [np.array([*before, *ids[: self.room], tokenizer.separator], np.int64) for ids in source_ids]
        lengths = np.array([len(row) for row in rows], np.int64)
        known = [clean(text) for text in targets if text is not None]
        written = _targets(known, tokenizer)
        unknown = [bool(np.isin(ids, tokenizer.special_ids).any()) for ids in written]
        decoded = [clean(tokenizer.decode(ids)) for ids in written[:LOOKED_AT]]
        ended = iter([np.append(ids, tokenizer.separator)[: self.longest] for ids in written])
        target_ids = [None if text is None else next(ended) for text in targets]
        asked = iter(written)
        cut = [max(0, len(next(asked)) + 1 - self.longest) if text is not None else 0 for text in targets]
        lost = np.array([max(0, len(ids) - self.room) for ids in source_ids], np.int64) + np.array(cut, np.int64)
        tokens = sum(map(len, source_ids)) + sum(map(len, written))
        return WritingItems(
            EncodedRows(rows, lengths, 0, lost=lost, tokens=tokens),
            np.arange(len(rows) + 1),
            np.arange(len(rows)),
            target_ids,
            room=self.room,
            sources_cut=sum(len(ids) > self.room for ids in source_ids),
            longest=self.longest,
            targets_cut=sum(len(ids) >= self.longest for ids in written),
            unknown=sum(unknown),
            looked_at=min(len(known), LOOKED_AT),
            changed=[
                (text, back)
                for text, back, lacks in zip(known, decoded, unknown, strict=False)
                if text != back and not lacks
            ],
        )

    def prompts(self, items: Items) -> tuple[list[list[int]], list[list[int]] | None]:
        """The tokens that the decoder reads first for each item, and the sources of the encoder, if there is one."""
        rows = [row.tolist() for row in items.encoded.ids]
        return ([self.format.prompt] * len(rows), rows) if self.has_source else (rows, None)


def _targets(texts: list[str], tokenizer: Tokenizer) -> list[NDArray[np.int64]]:
    if not texts:
        return []
    joined = tokenizer.encode_targets(texts)
    return np.split(joined.ids.astype(np.int64), np.cumsum(joined.lengths)[:-1])


def collate_targets(items: Items, chosen: NDArray[np.int64], format: InputFormat) -> WritingBatch:
    """The batch of some items whose targets are known, padded."""
    targets = [items.targets[item] for item in chosen]
    sources = [items.encoded.ids[item] for item in chosen]
    prompts = [np.array(format.prompt)] * len(targets) if format.has_source else sources
    rows = [np.concatenate([prompt, target[:-1]]) for prompt, target in zip(prompts, targets, strict=True)]
    ids, padding_mask = _padded(rows, format.pad)
    width = ids.shape[1]
    before = np.array([len(prompt) for prompt in prompts])
    positions = [
        number * width + first - 1 + np.arange(len(target))
        for number, (first, target) in enumerate(zip(before, targets, strict=True))
    ]
    source = Source(*_padded(sources, format.pad)) if format.has_source else None
    return WritingBatch(
        ids, padding_mask, source, torch.from_numpy(before), torch.from_numpy(np.concatenate(positions))
    )


def _padded(rows: Sequence[NDArray[np.int64]], pad: int) -> tuple[Tensor, Tensor | None]:
    """`padded` to a multiple of MULTIPLE, where rows differ in length."""
    return padded(rows, pad, step=1 if len({len(row) for row in rows}) == 1 else MULTIPLE)
