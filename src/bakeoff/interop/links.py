"""Links between the tensors of a run and those of another library's model, in both directions."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Many = Sequence[Tensor]


class Link(NamedTuple):
    """Tensors of ours, and tensors of theirs with the same content."""

    ours: tuple[str, ...]
    """Names in a run; none where theirs only repeat other tensors (`tied`)."""
    theirs: tuple[str, ...]
    """Names in their checkpoint."""
    to_ours: Callable[[Many], Many]
    """Conversion of their tensors to ours."""
    to_theirs: Callable[[Many], Many]
    """Conversion of our tensors to theirs, the exact inverse of `to_ours`."""
    optional: str = ""
    """Description of the part of the model that may be missing in a checkpoint and is random then; empty: it must
    exist."""
    vocabulary: bool = False
    """Whether the first dimension is the vocabulary, whose size may differ from the tokenizer's."""
    tied: str = ""
    """For a link without names in a run: their tensor that this one must equal if a checkpoint has both."""

    def may_miss(self, part: str) -> "Link":
        """The link as one of a part of the model that may be missing; `part` describes it."""
        return self._replace(optional=part)


def same(ours: str, theirs: str, vocabulary: bool = False) -> Link:
    """A tensor that is the same on both sides."""
    return Link((ours,), (theirs,), list, list, vocabulary=vocabulary)


def linear(ours: str, theirs: str, bias: bool = True) -> list[Link]:
    """Weight of a linear layer or a norm, and its bias if it has one."""
    return [same(f"{ours}.{name}", f"{theirs}.{name}") for name in of_linear(bias)]


def of_linear(bias: bool) -> tuple[str, ...]:
    """Names of the tensors of a linear layer or a norm."""
    return ("weight", "bias") if bias else ("weight",)


def joined(ours: str, theirs: Sequence[str]) -> Link:
    """A tensor of ours that concatenates theirs, which have equal sizes, along the first dimension."""
    return Link((ours,), tuple(theirs), lambda each: [torch.cat(list(each))], lambda each: each[0].chunk(len(theirs)))


def joined_linear(ours: str, theirs: Sequence[str]) -> list[Link]:
    """Weights and biases of their linear layers that are one layer in ours."""
    return [joined(f"{ours}.{name}", [f"{one}.{name}" for one in theirs]) for name in ("weight", "bias")]


def parted(ours: Sequence[str], theirs: str) -> Link:
    """A tensor of theirs that concatenates ours, which have equal sizes, along the first dimension."""
    return Link(tuple(ours), (theirs,), lambda each: each[0].chunk(len(ours)), lambda each: [torch.cat(list(each))])


def transposed(ours: str, theirs: str) -> Link:
    """A weight that is transposed on their side."""
    return Link((ours,), (theirs,), lambda each: [each[0].T.contiguous()], lambda each: [each[0].T.contiguous()])


def behind(ours: str, theirs: str, rows: int) -> Link:
    """A tensor of theirs with `rows` unused rows before ours; exports fill them with zeros."""

    def back(each: Many) -> Many:
        return [torch.cat([each[0].new_zeros(rows, *each[0].shape[1:]), each[0]])]

    return Link((ours,), (theirs,), lambda each: [each[0][rows:].contiguous()], back)


def zero_row(theirs: str, like: str) -> Link:
    """A table of theirs that ours lacks: exports write one row of zeros, as wide as our tensor `like`."""
    return Link((like,), (theirs,), list, lambda each: [each[0].new_zeros(1, each[0].shape[-1])])


def tied(theirs: str, to: str, part: str = "") -> Link:
    """A tensor of theirs that repeats their tensor `to`, and may be left out."""
    return Link((), (theirs,), lambda each: [], lambda each: [], optional=part, tied=to)


def names(links: Sequence[Link]) -> Iterator[str]:
    """Names of their tensors, without those that repeat others."""
    for link in links:
        if not link.tied:
            yield from link.theirs
