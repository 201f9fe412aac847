"""Similarity of texts by their words alone, a baseline for vectors of models.

Shapes: N pairs, C texts of a part, P partners.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.baselines.tfidf import CHARACTERS, MOST_FEATURES, WORDS
from bakeoff.vectors.retrieval import rows_at_once

OF_CHARACTERS = "tf-idf of characters"
"""The baseline that runs are put together with."""


class Comparer(Protocol):
    """A way to compare texts."""

    def of_pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.floating]:
        """(N,) similarity of each pair."""
        ...

    def of_all(self, texts: Sequence[str], partners: Sequence[str]) -> Iterator[NDArray[np.floating]]:
        """(C, P) similarities of texts with all partners, part by part in the order of texts."""
        ...


def baselines(texts: Sequence[str]) -> dict[str, Comparer]:
    """The baselines without a model, by name.

    Args:
        texts: all texts, from which frequencies are counted.
    """
    return {
        "tf-idf of words": TfIdf(texts, WORDS),
        # Languages without spaces have words of one cluster.
        OF_CHARACTERS: TfIdf(texts, CHARACTERS),
        "word overlap": WordOverlap(texts),
    }


class TfIdf:
    """The cosine of TF-IDF vectors, (1 + log tf) (1 + log((1 + n) / (1 + df))), with df of n texts having the feature.

    Args:
        texts: the n texts from which frequencies are counted.
        features: settings of the features for scikit-learn's vectorizers.
    """

    def __init__(self, texts: Sequence[str], features: dict[str, Any]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MOST_FEATURES, dtype=np.float32, **features)
        self._vectors = _fitted(vectorizer, texts)

    def of_pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float64]:
        """(N,) similarity of each pair; 0 if a text has no feature."""
        return _common(self._vectors(firsts), self._vectors(seconds))

    def of_all(self, texts: Sequence[str], partners: Sequence[str]) -> Iterator[NDArray[np.floating]]:
        """(C, P) similarities of texts with all partners, part by part in the order of texts."""
        rows, others = self._vectors(texts), self._vectors(partners).T.tocsr()
        count = rows_at_once(len(partners))
        for first in range(0, len(texts), count):
            yield (rows[first : first + count] @ others).toarray()


class Together:
    """The mean of two cosines: the cosine of both vectors side by side, each of length 1.

    Args:
        one: a way to compare texts by a cosine.
        other: another one.
    """

    def __init__(self, one: Comparer, other: Comparer) -> None:
        self._both = one, other

    def of_pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.floating]:
        """(N,) similarity of each pair."""
        one, other = (each.of_pairs(firsts, seconds) for each in self._both)
        return (one + other) / 2

    def of_all(self, texts: Sequence[str], partners: Sequence[str]) -> Iterator[NDArray[np.floating]]:
        """(C, P) similarities of texts with all partners, part by part in the order of texts."""
        for one, other in zip(*(each.of_all(texts, partners) for each in self._both), strict=True):
            yield (one + other) / 2


class WordOverlap:
    """The share of common words, |A & B| / |A | B|, with A and B the sets of the texts' words in lower case."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._vectors = _fitted(CountVectorizer(binary=True, dtype=np.float32, **WORDS), texts)

    def of_pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> NDArray[np.float64]:
        """(N,) similarity of each pair; 0 if neither text has a word."""
        rows, others = self._vectors(firsts), self._vectors(seconds)
        common = _common(rows, others)
        return common / np.maximum(_sums(rows) + _sums(others) - common, 1)

    def of_all(self, texts: Sequence[str], partners: Sequence[str]) -> Iterator[NDArray[np.floating]]:
        """(C, P) similarities of texts with all partners, part by part in the order of texts."""
        rows, others = self._vectors(texts), self._vectors(partners)
        sizes, turned = _sums(others), others.T.tocsr()
        count = rows_at_once(len(partners))
        for first in range(0, len(texts), count):
            part = rows[first : first + count]
            common = (part @ turned).toarray()
            yield common / np.maximum(_sums(part)[:, None] + sizes - common, 1)


def _fitted(vectorizer: Any, texts: Sequence[str]) -> Any:
    """A function from N texts to sparse (N, features); all zero if no text has a feature."""
    import scipy.sparse

    try:
        vectorizer.fit(texts)
    except ValueError:  # an empty vocabulary
        return lambda some: scipy.sparse.csr_matrix((len(some), 1), dtype=np.float32)
    return vectorizer.transform


def _common(rows: Any, others: Any) -> NDArray[np.float64]:
    """(N,) inner products of rows."""
    return np.asarray(rows.multiply(others).sum(1), np.float64).reshape(-1)


def _sums(rows: Any) -> NDArray[np.float64]:
    """(N,) sum of each row."""
    return np.asarray(rows.sum(1), np.float64).reshape(-1)
