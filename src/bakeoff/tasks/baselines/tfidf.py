"""TF-IDF of words and of characters: how well a task is done by counting alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unicodedata import normalize

from bakeoff.tasks.examples import Example, sides_of
from bakeoff.text.segmentation import words


def _lower(text: str) -> str:
    return normalize("NFC", text.lower())


WORDS: dict[str, Any] = {"analyzer": "word", "tokenizer": words, "token_pattern": None}
CHARACTERS: dict[str, Any] = {"analyzer": "char", "ngram_range": (1, 3), "preprocessor": _lower}
FEATURES: dict[str, dict[str, Any]] = {
    "word 1-2-grams": {**WORDS, "ngram_range": (1, 2)},
    # For text without spaces (Chinese, Thai), whose words are single clusters; elsewhere dev rarely prefers these.
    "character 1-3-grams": CHARACTERS,
}
"""The sets of features that are tried, by name, as arguments of the vectorizer."""

INVERSE_REGULARISATION = (0.1, 1.0, 10.0, 100.0)
"""The values of C that are tried for logistic regression."""

MOST_FEATURES = 200_000
"""The number of most frequent features that are kept, so that memory stays bounded on large training sets."""

Features = Callable[[Sequence[Example]], Any]


def counted(train: Sequence[Example], likeness: bool = False) -> Iterator[tuple[str, Features]]:
    """Each set of features by name, with a function from N texts or pairs to a sparse matrix (N, features).

    The two texts of a pair share one vocabulary; a pair has the features of both and their product, in which common
    features stand out. A set of features of which train has none is left out.

    Args:
        train: the examples whose texts decide vocabulary and weights.
        likeness: whether the cosine of the two texts of a pair is one more feature.
    """
    import scipy.sparse
    from sklearn.feature_extraction.text import TfidfVectorizer

    for name, options in FEATURES.items():
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MOST_FEATURES, **options)
        try:
            firsts, seconds = sides_of(train)
            vectorizer.fit([*firsts, *(seconds or [])])
        except ValueError:  # an empty vocabulary
            continue

        def features(examples: Sequence[Example], vectorizer: Any = vectorizer) -> Any:
            firsts, seconds = sides_of(examples)
            first = vectorizer.transform(firsts)
            if seconds is None:
                return first
            second = vectorizer.transform(seconds)
            common = first.multiply(second)
            # Rows have a length of 1, so that the sum of the products is the cosine.
            cosine = [scipy.sparse.csr_matrix(common.sum(1))] if likeness else []
            return scipy.sparse.hstack([first, second, common, *cosine], format="csr")

        yield name, features
