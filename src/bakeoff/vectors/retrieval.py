"""Retrieval: how far in front does each text's partner stand among the partners of all texts?

Shapes: M distinct pairs, P distinct partners, C texts at once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIMILARITIES = 1 << 24
"""Similarities that are held at once: 64 MB in float32."""

TIE = 1e-6
"""Similarities that are less apart tie, for other batches would change their order."""

Similarities = Callable[[Sequence[str], Sequence[str]], Iterator[NDArray[np.floating]]]
"""Similarities of all texts with all partners: (C, P) for some texts at a time, in their order."""


class PartnerRanks(NamedTuple):
    """Where the partners stand."""

    texts: int
    """M, distinct pairs, each of which is asked for once."""
    among: int
    """P, distinct partners."""
    recall: dict[int, float]
    """For each k the share of partners among the k most similar."""
    reciprocal_rank: float
    """The mean of 1 / rank (MRR)."""


def retrieve(pairs: Sequence[tuple[str, str]], similarities: Similarities, at: Sequence[int]) -> PartnerRanks:
    """Rank each text's partner among all partners by similarity.

    What is said twice counts once: a pair is asked for once, and partners that are the same text are one. Where a text
    has several partners, each is ranked as if the others were not there (filtered ranks: Bordes et al. 2013,
    Translating Embeddings for Modeling Multi-relational Data, section 4.1). Partners that tie with the right one stand
    before and behind it in every order in turn: with b that are more similar and t that tie, recall@k is
    min(max((k - b) / (t + 1), 0), 1), and the reciprocal rank the mean of 1 / (b + 1) ... 1 / (b + t + 1). So whoever
    finds all alike does as well as chance.

    Args:
        pairs: texts and their partners, at least one pair.
        similarities: the similarity of texts and partners.
        at: the numbers k.
    """
    partners = list(dict.fromkeys(partner for _, partner in pairs))
    place = {partner: number for number, partner in enumerate(partners)}
    of_text: dict[str, list[int]] = {}
    for text, partner in dict.fromkeys(pairs):
        of_text.setdefault(text, []).append(place[partner])
    better, tied = [], []
    texts = iter(of_text.values())
    for rows in similarities(list(of_text), partners):
        for row, own in zip(rows, texts, strict=False):
            right = row[own]
            # Its partners are counted among all, and then left out, the one that is ranked with them.
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
    """How many texts are compared with all partners at once."""
    return max(1, SIMILARITIES // max(1, partners))
