"""Batches of about the same number of tokens, from rows of about the same length, with little padding.

Shapes: S examples of an epoch, K lengths of an example (its row, and its source if it has one), B rows of a batch.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.batching.order import Selection, spread
from bakeoff.config import Config
from bakeoff.lengths import LENGTH_STEP, by_length
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute


class TokenBatch(Config):
    """The size of a batch, or of a micro-batch, in tokens."""

    tokens: int = Field(gt=0)
    """The largest number of tokens in the batch's rows, padding included; the rows' sources may have as many again."""


class TokenOrder:
    """The batches of all epochs, each a function of the seed and its step.

    Examples are sorted by length once, and the sorted list is cut into the batches of all epochs. In every epoch
    examples of the same length change places, and the batches come in another order. Both follow from keyed
    permutations, so that any step can be made without the steps before it.

    Attributes:
        batches: number of batches of an epoch.
    """

    steps_at_once = 1
    even = True

    def __init__(self, lengths: NDArray[np.int64], tokens: int, micro_tokens: int, seed: int) -> None:
        """Order S examples with (S, K) lengths, in batches of `tokens` and micro-batches of `micro_tokens` tokens."""
        self.seed, self.tokens, self.micro_tokens = seed, tokens, micro_tokens
        self.lengths = -(-lengths // LENGTH_STEP) * LENGTH_STEP
        longest = self.lengths.max(1)
        key = longest
        for side in self.lengths.T:  # one number that sorts by the longest side, then by each
            key = key * (int(side.max(initial=0)) + 1) + side
        self.sorted = by_length(key)
        key = key[self.sorted]
        new = np.flatnonzero(key[1:] != key[:-1]) + 1
        self.groups = np.concatenate([[0], new, [len(key)]])  # where each run of examples that are alike begins
        self.cuts = np.array(cut_by_tokens(longest[self.sorted], tokens))
        self.batches = len(self.cuts) - 1
        self.rows_a_step: tuple[float, ...] = (len(lengths) / self.batches,)

    def examples_of(self, step: int) -> tuple[NDArray[np.int64], int]:
        """(B,) the examples of a step's batch, in rising order of their lengths, and the epoch of the step."""
        epoch, index = divmod(step, self.batches)
        key = key_of(self.seed, 0, "batches by tokens")
        (batch,) = permute(np.array([index]), self.batches, key, epoch)
        positions = np.arange(self.cuts[batch], self.cuts[batch + 1])
        group = np.searchsorted(self.groups, positions, side="right") - 1
        for each in np.unique(group):
            first, size = self.groups[each], self.groups[each + 1] - self.groups[each]
            inside = group == each
            key = key_of(self.seed, int(each), "examples of one length")
            positions[inside] = first + permute(positions[inside] - first, int(size), key, epoch)
        return self.sorted[positions], epoch

    def steps(self, first: int) -> Selection:
        """The rows of one step, `first`."""
        indices, epoch = self.examples_of(first)
        epochs, steps = np.full(len(indices), epoch), np.full(len(indices), first)
        return Selection(indices, epochs, self.micro_batches(indices, self.micro_tokens), steps)

    def spread(self, examples: int) -> Iterator[Selection]:
        """`examples` examples spread evenly over the text, or all where there are fewer."""
        indices = spread(examples, len(self.lengths))
        for low, high in self.micro_batches(indices, self.micro_tokens):
            yield Selection(indices[low:high], np.zeros(high - low, np.int64), [(0, high - low)])

    def whole(self) -> Iterator[Selection]:
        """All examples in their order."""
        return self.spread(len(self.lengths))

    def epoch(self) -> Iterator[Selection]:
        """The examples of the first epoch."""
        return map(self.steps, range(self.batches))

    def micro_batches(self, examples: NDArray[np.int64], tokens: int) -> list[tuple[int, int]]:
        """The bounds of micro-batches of at most `tokens` tokens, for (B,) examples in their order."""
        longest = np.maximum.accumulate(self.lengths[examples].max(1))
        return list(pairwise(cut_by_tokens(longest, tokens)))


def cut_by_tokens(lengths: NDArray[np.int64], tokens: int) -> list[int]:
    """The positions at which rows of (n,) rising lengths are cut into groups of at most `tokens`, padding included.

    Returns:
        The cuts, 0 and n among them. A row that is longer than `tokens` is alone.
    """
    cuts, count = [0], len(lengths)
    while (first := cuts[-1]) < count:
        last = min(count, first + max(1, tokens // int(lengths[first])))
        rows = np.arange(1, last - first + 1)
        cuts.append(first + max(1, int(np.searchsorted(rows * lengths[first:last], tokens, side="right"))))
    return cuts
