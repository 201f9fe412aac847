"""The spans of one document each in rows of tokens, known to the processor, so that it need not ask the device.

Shapes: B rows, T length, N spans, M tokens, S length of the longest document.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bakeoff.machine.transfer import sent


@dataclass(frozen=True, eq=False)
class Spans:
    """Runs of neighbouring positions of one document, or of padding, in B rows laid out one after the other.

    All tensors are on the CPU. It is no tuple, so that neither what is done to all signals of a row nor the compiler
    looks into it.
    """

    starts: Tensor
    """(N,) the first position of each span among the B * T, rising; a span ends where the next one starts."""
    padding: Tensor
    """(N,) True for padding."""
    rows: int
    """B."""
    length: int
    """T."""

    def ends(self) -> Tensor:
        """(N,) the position after the last one of each span."""
        return torch.cat([self.starts[1:], torch.tensor([self.rows * self.length])])

    def turned(self) -> "Spans":
        """The spans of rows that are read from their ends."""
        row = self.starts // self.length
        starts, order = ((2 * row + 1) * self.length - self.ends()).sort()
        return Spans(starts, self.padding[order], self.rows, self.length)

    def side_by_side(self) -> tuple[Tensor, Tensor]:
        """The tokens of all documents, read side by side: the first token of each, then the second of each.

        Returns:
            (M,) their positions among the B * T, the longest document first; and (S,) how many documents have a first
            token, a second one and so on.
        """
        starts, lengths = (each[~self.padding] for each in (self.starts, self.ends() - self.starts))
        lengths, order = lengths.sort(descending=True)
        steps = torch.arange(int(lengths[0]) if len(lengths) else 0)[:, None]
        there = steps < lengths  # (S, N)
        return (starts[order] + steps)[there], there.sum(1)

    def bounds(self, device: torch.device) -> Tensor:
        """(N' + 1,) int32 the starts and the end of the last span, on a device.

        Further spans of no length fill them up to a power of two, so that what is compiled sees few shapes.
        """
        filled = 1 << (len(self.starts) - 1).bit_length()
        bounds = torch.full((filled + 1,), self.rows * self.length, dtype=torch.int32)
        bounds[: len(self.starts)] = self.starts
        return sent(bounds, device)


def spans_of(owners: Tensor) -> Spans:
    """The spans of rows by (B, T) numbers of documents, or True for tokens; 0 or False at padding; on the CPU."""
    starts = torch.ones_like(owners, dtype=torch.bool)
    starts[:, 1:] = owners[:, 1:] != owners[:, :-1]
    first = starts.flatten().nonzero()[:, 0]
    return Spans(first, owners.flatten()[first] == 0, *owners.shape)


def bounds_of_padded(padding_mask: Tensor) -> Tensor:
    """(3 B + 1,) int32 `Spans.bounds` of rows of one document each, from their (B, T) padding mask, on its device.

    A row has three spans, of padding, of tokens and of padding, each of which may be empty; tokens are contiguous.
    """
    rows, length = padding_mask.shape
    begin = torch.arange(rows, device=padding_mask.device) * length
    first = begin + padding_mask.to(torch.int32).argmax(1)
    bounds = torch.stack([begin, first, first + padding_mask.sum(1)], dim=1).flatten()
    return torch.cat([bounds, bounds.new_full((1,), rows * length)]).to(torch.int32)


def bounds_of_source(padding_mask: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """(3 B + 1,) int32 bounds of the queries of B rows, and of the keys that they see: the tokens of their sources.

    The padding of a source is of spans without queries; of a source that has no token, all is seen, as by a mask.

    Args:
        padding_mask: (B, U) the padding mask of the sources, whose tokens are contiguous; on the device.
        length: T, the number of queries of a row, its padding included.
    """
    rows = len(padding_mask)
    begin = bounds_of_rows(rows, length, padding_mask.device)
    queries = torch.stack([begin[:-1], begin[:-1], begin[1:]], dim=1).flatten()
    keys = bounds_of_padded(padding_mask | ~padding_mask.any(1, keepdim=True))
    return torch.cat([queries, begin[-1:]]), keys


def bounds_of_rows(rows: int, length: int, device: torch.device) -> Tensor:
    """(B + 1,) int32 `Spans.bounds` of rows that are one document each, without padding."""
    return torch.arange(0, (rows + 1) * length, length, dtype=torch.int32, device=device)
