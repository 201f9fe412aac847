"""Encoding of pairs of texts, each side in its vocabulary; pairs of unsuitable lengths are left out.

Shapes: P pairs, n tokens of all pairs.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pydantic import Field

from bakeoff.config import Config
from bakeoff.reading.aligned import Pair
from bakeoff.tokenizer.encoding import JoinedTexts
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer


class LengthFilter(Config):
    """Limits on the lengths of pairs; other pairs are left out."""

    longest_pair: int = Field(default=250, gt=0)
    """Largest number of tokens of a source, and of a target."""
    ratio: float | None = Field(default=None, ge=1)
    """Largest ratio of the longer side's tokens to the shorter side's; None: any ratio."""


class EncodedPairs(NamedTuple):
    """The kept pairs of one split; the target of a pair follows its source."""

    ids: np.ndarray  # (n,) uint32
    starts: np.ndarray  # (n,) bool, whether each token starts a word
    lengths: np.ndarray  # (2 P,) int64, tokens of source, target, source, ...
    size: int  # UTF-8 bytes of all texts
    words: int  # words between white space
    hidden: HiddenText  # counts of unknown tokens, and of the characters that have no other token
    target_size: int  # UTF-8 bytes of the targets
    target_hidden: HiddenText  # `hidden` of the targets
    skips: Counter[str]  # pairs that are left out, by reason


def encode_pairs(
    tokenizer: Tokenizer, job: list[tuple[int, Pair]], limits: LengthFilter | None
) -> tuple[EncodedPairs, EncodedPairs]:
    """Encode the pairs of a job, each with its split (0 or 1); `limits` None: keep pairs of any lengths."""
    first, second = (_encode(tokenizer, [pair for split, pair in job if split == wanted], limits) for wanted in (0, 1))
    return first, second


def _encode(tokenizer: Tokenizer, pairs: list[Pair], limits: LengthFilter | None) -> EncodedPairs:
    sides = (
        tokenizer.encode_joined([pair.source for pair in pairs]),
        tokenizer.encode_targets([p.target for p in pairs]),
    )
    ids, starts = np.concatenate([side.ids for side in sides]), np.concatenate([side.starts for side in sides])
    lengths = np.stack([side.lengths for side in sides], axis=1)  # (P, 2)
    shortest, longest = lengths.min(1, initial=1 << 62), lengths.max(1, initial=0)
    reasons = {"pairs with an empty side": shortest == 0}
    if limits is not None:
        reasons[f"pairs above {limits.longest_pair:,} tokens"] = longest > limits.longest_pair
    if limits is not None and limits.ratio is not None:
        reasons[f"pairs with one side above {limits.ratio:g} times the other"] = longest > limits.ratio * shortest
    skips: Counter[str] = Counter()
    dropped = np.zeros(len(pairs), dtype=bool)
    for reason, out in reasons.items():  # the first reason counts
        skips[reason] = int(np.count_nonzero(out & ~dropped))
        dropped |= out
    begins = np.cumsum(lengths.T).reshape(2, -1).T - lengths  # (P, 2) where each side stands in the ids of both
    begins, lengths = begins[~dropped].ravel(), lengths[~dropped].ravel()
    indices = np.repeat(begins - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    kept = [pair for pair, out in zip(pairs, dropped.tolist(), strict=True) if not out]
    sources, targets = [pair.source for pair in kept], [pair.target for pair in kept]
    target_size = len("".join(targets).encode())
    all_kept = len(kept) == len(pairs)
    target_hidden = _hidden(sides[1].hidden, targets, all_kept, tokenizer.encode_targets)
    return EncodedPairs(
        ids=ids[indices],
        starts=starts[indices],
        lengths=lengths,
        size=len("".join(sources).encode()) + target_size,
        words=sum(len(text.split()) for pair in kept for text in pair),
        hidden=_hidden(sides[0].hidden, sources, all_kept, tokenizer.encode_joined) + target_hidden,
        target_size=target_size,
        target_hidden=target_hidden,
        skips=skips,
    )


def _hidden(
    counts: HiddenText, kept: list[str], all_kept: bool, encode: Callable[[list[str]], JoinedTexts]
) -> HiddenText:
    """The counts of the kept texts of one side, from those of all; texts are encoded again if some are left out."""
    return counts if all_kept else encode(kept).hidden
