"""A batch, as models and objectives are given it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.models.inputs import Inputs, Queries, Source


@dataclass(frozen=True)
class Batch:
    """One batch, or a part of it; B rows, T length."""

    ids: Tensor
    """(B, T) token ids."""
    segments: Tensor | None
    """(B, T) segment ids, or None for segment 0 everywhere."""
    real: Tensor | None
    """(B, T) True for tokens, False for padding; None where there is no padding or `documents` is given."""
    documents: Tensor | None
    """(B, T) document of each token, 0 for padding; None where every row is one document."""
    targets: dict[str, tuple[Tensor, Tensor]]
    """For each objective (n,) rows of the hidden states flattened to (B * T * directions, D), and (n,) labels."""
    tokens: int
    """Number of tokens, those of the source included, padding not counted."""
    source: Source | None = None
    """What the encoder reads, for a model that has a decoder too."""
    queries: Queries | None = None
    """The second stream, whose rows follow the tokens' in the hidden states: (B, T + N, D)."""
    backwards: Tensor | None = None
    """(B,) True for rows that read the text from its end; None: none does."""
    prefix: Tensor | None = None
    """(B,) how many tokens at the beginning of each row are seen by all of it; None: none."""
    follows: Tensor | None = None
    """(B,) True where the second segment goes on with the first, where formats draw that and nothing predicts it: to be
    looked at, no model reads it."""
    advance: int | None = None
    """Each row goes on with the text of the same row of the batch before, and the next batch's with what is behind so
    many tokens of it; None: rows stand alone."""

    @property
    def inputs(self) -> Inputs:
        """What a model reads of it."""
        rows = self.ids, self.segments, self.real, self.documents
        return Inputs(*rows, self.source, self.queries, self.backwards, self.prefix)

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device."""
        if device.type == "cpu":
            return self

        def move(tensor: Tensor | None) -> Tensor | None:
            if tensor is None or device.type != "cuda":
                return None if tensor is None else tensor.to(device)
            return tensor.pin_memory().to(device, non_blocking=True)

        return Batch(
            cast(Tensor, move(self.ids)),
            move(self.segments),
            move(self.real),
            move(self.documents),
            {name: (cast(Tensor, move(r)), cast(Tensor, move(y))) for name, (r, y) in self.targets.items()},
            self.tokens,
            self.source and Source(cast(Tensor, move(self.source.ids)), move(self.source.real)),
            self.queries and Queries(*(cast(Tensor, move(part)) for part in self.queries)),
            move(self.backwards),
            move(self.prefix),
            self.follows,
            self.advance,
        )


def join(batches: Sequence[Batch], directions: int, pad: int) -> Batch:
    """One batch of the rows of several, which may differ in their lengths.

    Args:
        batches: batches of the same objectives, whose rows stand alone.
        directions: hidden states of each position.
        pad: id of the padding token.
    """
    if len(batches) == 1:
        return batches[0]
    assert all(batch.advance is None and batch.backwards is None for batch in batches), "their rows go on in turn"
    length = max(batch.ids.shape[1] for batch in batches)
    stream = max(0 if batch.queries is None else batch.queries.positions.shape[1] for batch in batches)
    targets: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in batches[0].targets}
    before = 0
    for batch in batches:
        own = batch.ids.shape[1]
        slots = own if batch.queries is None else batch.queries.visible.shape[1]
        for name, (rows, labels) in batch.targets.items():
            example, place = rows // (slots * directions), rows % (slots * directions)
            place, direction = place // directions, place % directions
            place = place + (place >= own) * (length - own)
            targets[name].append((((before + example) * (length + stream) + place) * directions + direction, labels))
        before += len(batch.ids)
    documents = [_owners(batch) for batch in batches]
    packed = any(batch.documents is not None for batch in batches)
    owners = torch.cat([F.pad(each, (0, length - each.shape[1])) for each in documents])
    ids = torch.cat([F.pad(batch.ids, (0, length - batch.ids.shape[1]), value=pad) for batch in batches])
    segments = None
    if any(batch.segments is not None for batch in batches):
        each = [torch.zeros_like(batch.ids) if batch.segments is None else batch.segments for batch in batches]
        segments = torch.cat([F.pad(part, (0, length - part.shape[1])) for part in each])
    return Batch(
        ids=ids,
        segments=segments,
        real=owners > 0 if not packed and bool((owners == 0).any()) else None,
        documents=owners if packed else None,
        targets={
            name: (torch.cat([rows for rows, _ in parts]), torch.cat([labels for _, labels in parts]))
            for name, parts in targets.items()
        },
        tokens=sum(batch.tokens for batch in batches),
        source=_joined_sources([batch.source for batch in batches], pad),
        queries=_joined_queries(batches, length, stream) if stream else None,
        prefix=_joined_prefixes([batch.prefix for batch in batches]),
    )


def _owners(batch: Batch) -> Tensor:
    """(B, T) document of each token, 0 for padding."""
    if batch.documents is not None:
        return batch.documents
    real = torch.ones_like(batch.ids, dtype=torch.bool) if batch.real is None else batch.real
    return real.to(torch.int32)


def _joined_sources(sources: Sequence[Source | None], pad: int) -> Source | None:
    given = [source for source in sources if source is not None]
    if not given:
        return None
    length = max(source.ids.shape[1] for source in given)
    ids = torch.cat([F.pad(source.ids, (0, length - source.ids.shape[1]), value=pad) for source in given])
    every = [torch.ones_like(source.ids, dtype=torch.bool) if source.real is None else source.real for source in given]
    real = torch.cat([F.pad(each, (0, length - each.shape[1])) for each in every])
    return Source(ids, None if bool(real.all()) else real)


def _joined_prefixes(prefixes: Sequence[Tensor | None]) -> Tensor | None:
    given = [prefix for prefix in prefixes if prefix is not None]
    assert len(given) in (0, len(prefixes)), "batches of the same objectives"
    return torch.cat(given) if given else None


def _joined_queries(batches: Sequence[Batch], length: int, stream: int) -> Queries:
    rows = sum(len(batch.ids) for batch in batches)
    positions = torch.zeros(rows, stream, dtype=torch.int64)
    visible = torch.zeros(rows, length + stream, length, dtype=torch.bool)
    before = 0
    for batch in batches:
        assert batch.queries is not None
        count, own, queries = *batch.ids.shape, batch.queries.positions.shape[1]
        part = slice(before, before + count)
        positions[part, :queries] = batch.queries.positions
        visible[part, :own, :own] = batch.queries.visible[:, :own]
        visible[part, length : length + queries, :own] = batch.queries.visible[:, own:]
        before += count
    return Queries(positions, visible)
