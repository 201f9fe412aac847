"""Random numbers without a generator's state: every number is a function of (seed, epoch, example, stream)."""

import zlib

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox(counters: NDArray[np.uint64], key: int, rounds: int = 10) -> NDArray[np.uint32]:
    """Philox-4x32 of Salmon et al. 2011 (Parallel random numbers: as easy as 1, 2, 3), vectorised over counters.

    Args:
        counters: (4, ...) the four 32-bit words of each counter, held in 64 bits.
        key: 64 bits.
        rounds: 10 as published.

    Returns:
        (4, ...) 32-bit random words, one for each word of the counters.
    """
    c0, c1, c2, c3 = counters
    k0, k1 = np.uint64(key) & _LOW, np.uint64(key) >> _SHIFT
    for _ in range(rounds):
        product0, product1 = c0 * _MULTIPLIER_0, c2 * _MULTIPLIER_1
        c0, c1, c2, c3 = (
            (product1 >> _SHIFT) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> _SHIFT) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return np.stack([c0, c1, c2, c3]).astype(np.uint32)


def key_of(seed: int, epoch: int, stream: str) -> int:
    """A 64-bit key mixed from seed, epoch and the name of the numbers' purpose (SplitMix64's finaliser)."""
    value = 0
    for word in (seed, epoch, zlib.crc32(stream.encode())):
        value = (value + word + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        value ^= value >> 31
    return value


class Draws:
    """The random numbers of some examples; they do not depend on the batch in which an example stands.

    Args:
        seed: the run's seed.
        epoch: (N,) the epoch in which each example is drawn; zeros make the draws static.
        examples: (N,) the examples' indices.
    """

    def __init__(self, seed: int, epoch: NDArray[np.int64], examples: NDArray[np.int64]) -> None:
        self.seed = seed
        self.epoch = epoch
        self.examples = examples

    def static(self, versions: int | None = 1) -> "Draws":
        """Draws for the same examples that repeat every `versions` epochs; None: never."""
        return self if versions is None else Draws(self.seed, self.epoch % versions, self.examples)

    def words(self, stream: str, count: int) -> NDArray[np.uint32]:
        """(N, count) uniform 32-bit words of one named stream."""
        blocks = -(-count // 4)
        words = np.empty((len(self.examples), blocks * 4), np.uint32)
        for epoch in np.unique(self.epoch):
            rows = self.epoch == epoch
            examples = self.examples[rows].astype(np.uint64)[:, None]
            counters = np.empty((4, len(examples), blocks), np.uint64)
            counters[0], counters[1] = examples & _LOW, examples >> _SHIFT
            counters[2], counters[3] = np.arange(blocks, dtype=np.uint64), 0
            drawn = philox(counters, key_of(self.seed, int(epoch), stream))
            words[rows] = drawn.transpose(1, 2, 0).reshape(len(examples), -1)
        return words[:, :count]

    def uniform(self, stream: str, count: int) -> NDArray[np.float64]:
        """(N, count) uniform numbers in [0, 1)."""
        return self.words(stream, count).astype(np.float64) * 2.0**-32

    def integers(self, stream: str, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) one integer for each example, uniform in [0, bound); bounds are below 2**53."""
        words = self.words(stream, 2).astype(np.uint64)
        fraction = ((words[:, 0] << np.uint64(21)) ^ (words[:, 1] >> np.uint64(11))) * 2.0**-53
        return np.minimum((fraction * bounds).astype(np.int64), bounds - 1)
