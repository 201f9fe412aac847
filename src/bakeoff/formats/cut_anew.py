"""Rows that are cut anew in every epoch, as a function of the seed and the epoch.

The first epoch is cut as the text stands, with and without this setting: held-out rows, the number of rows and their
mean length are those of this cut. Shapes: N rows, D documents, S sentences, n chunks.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.randomness.draws import Draws, key_of
from bakeoff.randomness.order import shuffle

Integers = NDArray[np.int64]
Cut = TypeVar("Cut")

TOGETHER = 1 << 24
"""Number of tokens of shuffled documents whose rows are looked for at a time."""


class Epoch(NamedTuple):
    """The pass over a text for which rows are cut."""

    seed: int
    """The seed of the text's random numbers."""
    number: int
    """Number of passes before it."""

    def draws(self, examples: Integers, stream: str) -> Draws:
        """The random numbers of (n,) documents, or other things with a number."""
        return Draws(key_of(self.seed, 0, stream), np.full(len(examples), self.number), examples)


class Cuts(Generic[Cut]):
    """The text as it is cut in each epoch; the last two are kept, since the rows of a step may be of two epochs.

    Args:
        first: the text as it is cut in the first epoch.
        make: cuts it for a later epoch; None: all epochs are cut alike.
    """

    def __init__(self, first: Cut, make: Callable[[Epoch], Cut] | None) -> None:
        self.first, self._make = first, make
        self._kept: dict[Epoch, Cut] = {}

    def of(self, epoch: Epoch) -> Cut:
        """The text as it is cut in an epoch."""
        if self._make is None or epoch.number == 0:
            return self.first
        if epoch not in self._kept:
            self._kept = {**dict([*self._kept.items()][-1:]), epoch: self._make(epoch)}
        return self._kept[epoch]

    def rows(
        self, indices: Integers, draws: Draws, make: Callable[[Cut, Integers], tuple[NDArray[Any], ...]]
    ) -> tuple[NDArray[Any], ...]:
        """Arrays with an entry for each of (N,) rows, each made from the cut of its epoch.

        Args:
            indices: (N,) the rows.
            draws: their random numbers, which say the epoch of each.
            make: makes the arrays of some rows from a cut.
        """
        epochs = np.unique(draws.epoch) if self._make is not None else np.zeros(1, np.int64)
        if len(epochs) <= 1:
            return make(self.of(Epoch(draws.seed, int(epochs[0]) if len(epochs) else 0)), indices)
        together: tuple[NDArray[Any], ...] = ()
        for number in epochs:
            members = np.flatnonzero(draws.epoch == number)
            made = make(self.of(Epoch(draws.seed, int(number))), indices[members])
            together = together or tuple(np.empty((len(indices), *each.shape[1:]), each.dtype) for each in made)
            for whole, part in zip(together, made, strict=True):
                whole[members] = part
        return together


class Chunks:
    """The starts and stops of an epoch's rows.

    Args:
        bounds: (2, n) starts and stops.
        size: the number of rows of an epoch; where the text was cut into more or fewer, some are left out or come
            twice: a run of neighbours that begins anywhere.
        epoch: the epoch; None: the first.
    """

    def __init__(self, bounds: Integers, size: int, epoch: Epoch | None = None) -> None:
        self.bounds = bounds
        count = bounds.shape[1]
        self._turned = epoch is not None and count != size
        self._shift = key_of(epoch.seed, epoch.number, "first chunk") % count if epoch is not None else 0

    def of(self, indices: Integers) -> tuple[Integers, Integers]:
        """(N,) starts and (N,) stops of these rows."""
        places = (indices + self._shift) % self.bounds.shape[1] if self._turned else indices
        return self.bounds[0, places], self.bounds[1, places]


def document_order(documents: int, epoch: Epoch) -> Integers:
    """(D,) the documents in the order in which an epoch reads them."""
    return shuffle(documents, key_of(epoch.seed, epoch.number, "documents"))


def shuffled_text(split: Split, order: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Starts of sentences and documents, each with the end, in the text whose documents follow `order`.

    It comes in stretches of about `TOGETHER` tokens, so that memory stays bounded.
    """
    sentences, documents = np.asarray(split.sentences), np.asarray(split.documents)
    sizes = np.diff(documents)[order]
    ends = np.cumsum(sizes)
    cuts = np.unique(np.append(np.searchsorted(ends, np.arange(0, ends[-1], TOGETHER)), len(order)))
    for low, high in pairwise(cuts):
        here = order[low:high]
        first, last = np.searchsorted(sentences, documents[here]), np.searchsorted(sentences, documents[here + 1])
        numbers = runs(first, last)
        begin = ends[low] - sizes[low]
        lengths = sentences[numbers + 1] - sentences[numbers]
        yield begin + _ends(lengths), begin + _ends(sizes[low:high])


def runs(first: Integers, last: Integers) -> Integers:
    """The numbers from (n,) `first` up to before (n,) `last`, one run after the other."""
    counts = last - first
    numbers: Integers = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return numbers


def _ends(lengths: Integers) -> Integers:
    """(n + 1,) where runs of these lengths begin and end, from 0 on."""
    return np.concatenate([[0], np.cumsum(lengths)])
