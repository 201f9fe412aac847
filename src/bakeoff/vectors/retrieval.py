"""Retrieval: the rank of each text's partner among the partners of all texts.

Shapes: M distinct pairs, P distinct partners, C texts of a part.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIMILARITIES = 1 << 24
"""Largest number of similarities held at once: 64 MB in float32."""

TIE = 1e-6
"""Similarities that differ by less tie: rounding in other batches could change their order."""

Similarities = Callable[[Sequence[str], Sequence[str]], Iterator[NDArray[np.floating]]]
"""A function from texts and partners to their (C, P) similarities, part by part in the order of texts."""


class PartnerRanks(NamedTuple):
    """Figures of a retrieval."""

    texts: int
    """M, number of distinct pairs; each is one query."""
    among: int
    """P, number of distinct partners."""
    recall: dict[int, float]
    """The share of partners that rank among the k most similar, by k."""
    reciprocal_rank: float
    """The mean of 1 / rank over queries (MRR)."""


def retrieve(pairs: Sequence[tuple[str, str]], similarities: Similarities, at: Sequence[int]) -> PartnerRanks:
    """Rank each text's partner among all partners by similarity.

    Equal pairs count once, and equal partners are one. For a text with several partners, each is ranked without the
    others (filtered ranks: Bordes et al. 2013, Translating Embeddings for Modeling Multi-relational Data, section 4.1).
    Ties are averaged over all orders: with b partners that are more similar and t that tie, recall@k is
    min(max((k - b) / (t + 1), 0), 1), and the reciprocal rank is the mean of 1 / (b + 1) ... 1 / (b + t + 1). Equal
    similarities therefore score as chance does.

    Args:
        pairs: texts and their partners, at least one pair.
        similarities: a function to the similarities of texts and partners.
        at: the numbers k.
    """
    partners = list(dict.fromkeys(partner for _, partner in pairs))
    index_of = {partner: number for number, partner in enumerate(partners)}
    of_text: dict[str, list[int]] = {}
    for text, partner in dict.fromkeys(pairs):
        of_text.setdefault(text, []).append(index_of[partner])
    better, tied = [], []
    texts = iter(of_text.values())
    for rows in similarities(list(of_text), partners):
        for row, indices in zip(rows, texts, strict=False):
            right = row[indices]
            # The text's partners are counted among all and subtracted again.
            above = [int((row > value + TIE).sum() - (right > value + TIE).sum()) for value in right]
            least = [int((row >= value - TIE).sum() - (right >= value - TIE).sum()) for value in right]
            better += above
            tied += [both - one for both, one in zip(least, above, strict=True)]
    b, t = np.array(better, np.float64), np.array(tied, np.float64)
    recall = {k: float(np.clip((k - b) / (t + 1), 0, 1).mean()) for k in at}
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(partners) + 1))])
    ranks = (harmonic[(b + t + 1).astype(int)] - harmonic[b.astype(int)]) / (t + 1)
    return PartnerRanks(len(b), len(partners), recall, float(ranks.mean()))


def rows_at_once(partners: int) -> int:
    """Number of texts that are compared with `partners` partners at once."""
    return max(1, SIMILARITIES // max(1, partners))
