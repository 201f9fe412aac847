"""What counting words in the text of a pre-training is worth on labelled sentences: latent semantic analysis.

    python benchmarks/counted_text.py TEXT DATA OUT [--tasks NAME ...]

TEXT is JSON lines with a field `text`. Its words are counted in stretches of 200, weighted by TF-IDF and reduced to the
largest singular vectors (Deerwester et al. 1990); a labelled text becomes a vector in the same way, and logistic
regression learns from those of train and dev. Ten folds of these choose the number of singular vectors and the strength
of the regression; test is scored once. DATA and the tasks are those of `runs_that_pay.py`.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from public_tasks import KNOWN, known_task
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from bakeoff.tasks.data import load_task

STRETCH = 200
WIDTHS = (50, 100, 200, 300)
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def first(vectors: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """The first numbers of each vector."""
    return vectors[:, :width]


def stretches(text: Path) -> Iterator[str]:
    """The text in stretches of words."""
    with text.open(encoding="utf-8") as file:
        for line in file:
            words = json.loads(line)["text"].split()
            yield from (" ".join(words[start : start + STRETCH]) for start in range(0, len(words), STRETCH))


def chosen(train: list[str], labels: list[str], counts: TfidfVectorizer, directions: TruncatedSVD) -> GridSearchCV:
    """The best regression on the best number of directions, fitted to all of train."""
    steps = make_pipeline(
        counts,
        directions,
        FunctionTransformer(first),
        Normalizer(),
        StandardScaler(),
        LogisticRegression(max_iter=2000),
    )
    steps.steps[:2] = [(name, FrozenEstimator(step)) for name, step in steps.steps[:2]]
    grid = {"functiontransformer__kw_args": [{"width": width} for width in WIDTHS], "logisticregression__C": STRENGTHS}
    return GridSearchCV(steps, grid, cv=StratifiedKFold(10, shuffle=True, random_state=0)).fit(train, labels)


def main() -> None:
    """Count, choose, and print the accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=[*KNOWN], default=["SIB-200, English", "TREC"])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    counts = TfidfVectorizer(min_df=3, sublinear_tf=True)
    directions = TruncatedSVD(max(WIDTHS), random_state=0).fit(counts.fit_transform(stretches(given.text)))
    for name in given.tasks:
        data = load_task(known_task(name, given.data, given.out).data)
        train, test = [*data.train, *data.dev], data.test
        best = chosen([each.texts[0] for each in train], [each.label for each in train], counts, directions)
        accuracy = best.score([each.texts[0] for each in test], [each.label for each in test])
        print(
            f"{name}: {100 * accuracy:.1f} on test, {100 * best.best_score_:.1f} on folds; {best.best_params_}",
            flush=True,
        )


if __name__ == "__main__":
    main()
