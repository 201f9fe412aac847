"""Which tensors of a model elsewhere the tensors of a model of ours are made of, and the way back."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Many = Sequence[Tensor]


class Link(NamedTuple):
    """Tensors of ours, and those of theirs that say the same."""

    ours: tuple[str, ...]
    """Names in a run; none where theirs only repeat others (`tied`)."""
    theirs: tuple[str, ...]
    """Names in their file."""
    to_ours: Callable[[Many], Many]
    """The map from their tensors to ours."""
    to_theirs: Callable[[Many], Many]
    """Ours to theirs; undoes `to_ours` to the last bit."""
    optional: str = ""
    """The part of the model, in words, that may be missing there as a whole and is fresh then; empty: it may not."""
    vocabulary: bool = False
    """The first dimension is one row a token, of which there may be more or fewer than the tokenizer has."""
    tied: str = ""
    """For a link without names in a run: their other tensor, which this one has to equal where a file has both."""

    def may_miss(self, part: str) -> "Link":
        """The same, as belonging to a part that may be missing as a whole."""
        return self._replace(optional=part)


def same(ours: str, theirs: str, vocabulary: bool = False) -> Link:
    """One tensor, the same on both sides."""
    return Link((ours,), (theirs,), list, list, vocabulary=vocabulary)


def linear(ours: str, theirs: str) -> list[Link]:
    """Weight and bias of a linear map or a norm."""
    return [same(f"{ours}.{name}", f"{theirs}.{name}") for name in ("weight", "bias")]


def joined(ours: str, theirs: Sequence[str]) -> Link:
    """Ours is theirs, all of one size, one behind the other."""
    return Link((ours,), tuple(theirs), lambda each: [torch.cat(list(each))], lambda each: each[0].chunk(len(theirs)))


def joined_linear(ours: str, theirs: Sequence[str]) -> list[Link]:
    """Weights and biases of linear maps that are one in ours."""
    return [joined(f"{ours}.{name}", [f"{one}.{name}" for one in theirs]) for name in ("weight", "bias")]


def parted(ours: Sequence[str], theirs: str) -> Link:
    """Theirs is ours, all of one size, one behind the other."""
    return Link(tuple(ours), (theirs,), lambda each: each[0].chunk(len(ours)), lambda each: [torch.cat(list(each))])


def transposed(ours: str, theirs: str) -> Link:
    """A weight that lies the other way round."""
    return Link((ours,), (theirs,), lambda each: [each[0].T.contiguous()], lambda each: [each[0].T.contiguous()])


def behind(ours: str, theirs: str, rows: int) -> Link:
    """Ours is theirs without its first rows, which nothing reads; on the way back they are zeros."""

    def back(each: Many) -> Many:
        return [torch.cat([each[0].new_zeros(rows, *each[0].shape[1:]), each[0]])]

    return Link((ours,), (theirs,), lambda each: [each[0][rows:].contiguous()], back)


def zero_row(theirs: str, like: str) -> Link:
    """A table of theirs with one row of zeros, as wide as a tensor of ours, where ours has none; for the way back."""
    return Link((like,), (theirs,), list, lambda each: [each[0].new_zeros(1, each[0].shape[-1])])


def tied(theirs: str, to: str, part: str = "") -> Link:
    """A tensor of theirs that repeats another one, and may be left out."""
    return Link((), (theirs,), lambda each: [], lambda each: [], optional=part, tied=to)


def names(links: Sequence[Link]) -> Iterator[str]:
    """Names of the tensors in their file, without those that only repeat others."""
    for link in links:
        if not link.tied:
            yield from link.theirs
