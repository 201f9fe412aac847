"""The floors of a comparison: what a task gives away without any neural network."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from bakeoff.comparison.results import Floor
from bakeoff.tasks.data import Labelled, TaskData
from bakeoff.tasks.metrics import score

INVERSE_REGULARISATION = (0.1, 1.0, 10.0, 100.0)
"""Values of C that are tried on dev."""

FEATURES = {
    "word 1-2-grams": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    # Text without spaces (Chinese, Japanese, Thai) has no words to count; in other languages dev rarely prefers these.
    "character 1-3-grams": {"analyzer": "char", "ngram_range": (1, 3)},
}
"""Ways to count that are tried on dev."""

MOST_FEATURES = 200_000
"""The most frequent ones are kept, so that memory stays bounded on large training sets."""


def floors(task: str, data: TaskData, metric: str) -> list[Floor]:
    """Both floors of a task."""
    return [majority(task, data), tfidf(task, data, metric)]


def majority(task: str, data: TaskData) -> Floor:
    """Always the most frequent class of train; on a tie the lowest."""
    counts = Counter(data.train.labels)
    most = min(counts, key=lambda label: (-counts[label], label))

    def scored(split: Labelled) -> dict[str, float]:
        return score(split.labels, [most] * len(split.labels), len(data.classes))

    return Floor(task=task, kind="majority", dev=scored(data.dev), test=scored(data.test), chosen={"class": most})


def tfidf(task: str, data: TaskData, metric: str) -> Floor:
    """TF-IDF of words or characters with logistic regression; features and regularisation are chosen on dev.

    The two texts of a pair share one vocabulary; the classifier sees both and, as their likeness, their product.
    """
    best: tuple[float, Callable[[Labelled], dict[str, float]], dict[str, Any]] | None = None
    for chosen, scored in _candidates(data):
        value = scored(data.dev)[metric]
        if best is None or value > best[0]:  # on a tie the simpler one, which is tried first
            best = value, scored, chosen
    if best is None:
        # No row has any word or character, or train has one class only: nothing can be learned.
        simple = majority(task, data)
        return simple.model_copy(update={"kind": "tfidf_logistic_regression", "chosen": {"features": "none"}})
    _, scored, chosen = best
    return Floor(
        task=task,
        kind="tfidf_logistic_regression",
        dev=scored(data.dev),
        test=scored(data.test),
        chosen=chosen,
    )


def _candidates(data: TaskData) -> Iterator[tuple[dict[str, Any], Callable[[Labelled], dict[str, float]]]]:
    """Every fitted classifier, as what was chosen and a function that scores a split with it."""
    import scipy.sparse  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    if len(set(data.train.labels)) < 2:
        return
    for name, options in FEATURES.items():
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MOST_FEATURES, **options)
        try:
            vectorizer.fit([*data.train.texts, *(data.train.pairs or [])])
        except ValueError:  # an empty vocabulary
            continue

        def features(split: Labelled, vectorizer: Any = vectorizer) -> Any:
            first = vectorizer.transform(split.texts)
            if split.pairs is None:
                return first
            second = vectorizer.transform(split.pairs)
            return scipy.sparse.hstack([first, second, first.multiply(second)], format="csr")

        train = features(data.train)
        model = LogisticRegression(max_iter=300, warm_start=True)
        for c in INVERSE_REGULARISATION:
            model = deepcopy(model).set_params(
                C=c
            )  # begins at the optimum of the stronger regularisation, which is near
            with warnings.catch_warnings():
                # An optimum that is almost reached scores the same, and dev judges it like any other.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(train, list(data.train.labels))

            def scored(split: Labelled, model: Any = model, features: Any = features) -> dict[str, float]:
                return score(split.labels, model.predict(features(split)).tolist(), len(data.classes))

            yield {"features": name, "C": c}, scored
