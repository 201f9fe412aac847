"""The floors of a comparison: what a task gives away without any neural network."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from bakeoff.comparison.results import Floor
from bakeoff.tasks.data import TaskData
from bakeoff.tasks.kinds.classification import Classification, LabelledText
from bakeoff.tasks.metrics import score
from bakeoff.tasks.texts import sides_of

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
    task_of = _classification(data)
    dev, test = (task_of.simplest(data.train, part) for part in (data.dev, data.test))
    chosen = {"class": task_of.most_frequent(data.train)}
    return Floor(task=task, kind="majority", dev=dev, test=test, chosen=chosen)


def _classification(data: TaskData) -> Classification:
    """The task, of the one kind that plans have."""
    assert isinstance(data.task, Classification)
    return data.task


def tfidf(task: str, data: TaskData, metric: str) -> Floor:
    """TF-IDF of words or characters with logistic regression; features and regularisation are chosen on dev.

    The two texts of a pair share one vocabulary; the classifier sees both and, as their likeness, their product.
    """
    best: tuple[float, Callable[[Sequence[LabelledText]], dict[str, float]], dict[str, Any]] | None = None
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


def _candidates(
    data: TaskData,
) -> Iterator[tuple[dict[str, Any], Callable[[Sequence[LabelledText]], dict[str, float]]]]:
    """Every fitted classifier, as what was chosen and a function that scores a split with it."""
    import scipy.sparse  # type: ignore[import-untyped]
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    task = _classification(data)
    labels = task.places_of(data.train)
    if len(set(labels)) < 2:
        return
    for name, options in FEATURES.items():
        vectorizer = TfidfVectorizer(sublinear_tf=True, max_features=MOST_FEATURES, **options)
        try:
            firsts, seconds = sides_of(data.train)
            vectorizer.fit([*firsts, *(seconds or [])])
        except ValueError:  # an empty vocabulary
            continue

        def features(split: Sequence[LabelledText], vectorizer: Any = vectorizer) -> Any:
            firsts, seconds = sides_of(split)
            first = vectorizer.transform(firsts)
            if seconds is None:
                return first
            second = vectorizer.transform(seconds)
            return scipy.sparse.hstack([first, second, first.multiply(second)], format="csr")

        train = features(data.train)
        model = LogisticRegression(max_iter=300, warm_start=True)
        for c in INVERSE_REGULARISATION:
            # It begins at the optimum of the stronger regularisation, which is near.
            model = deepcopy(model).set_params(C=c)
            with warnings.catch_warnings():
                # An optimum that is almost reached scores the same, and dev judges it like any other.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(train, labels)

            def scored(split: Sequence[LabelledText], model: Any = model, features: Any = features) -> dict[str, float]:
                return score(task.places_of(split), model.predict(features(split)).tolist(), task.outputs)

            yield {"features": name, "C": c}, scored
