"""Answers from the scores of a context's tokens: the best stretches of all windows, and the score of no answer."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.rows.items import Items
from bakeoff.text.segmentation import whole_clusters


class Candidate(NamedTuple):
    """A stretch of a context that may be the answer."""

    text: str
    """The text of the stretch, as the context has it."""
    start: int
    """The index of the first character in the context."""
    end: int
    """The index after the last character."""
    score: float
    """The score of its first token as beginning plus the score of its last token as end; the best of all windows."""


class PredictedAnswer(NamedTuple):
    """The candidates for the answer to a question, from all of its windows, and the score of no answer."""

    candidates: tuple[Candidate, ...]
    """The best stretches, the best first."""
    none: float
    """The score of no answer: the lowest of all windows, since one window may lack an answer that another has."""

    @property
    def difference(self) -> float:
        """The score of no answer minus the score of the best stretch."""
        return self.none - self.candidates[0].score if self.candidates else float("inf")

    def probabilities(self, unanswerable: bool) -> tuple[list[float], float]:
        """The probabilities of the candidates, and of no answer; the latter is 0 where every question has an answer."""
        scores = np.array([each.score for each in self.candidates] + [self.none] * unanswerable, np.float64)
        shares = np.exp(scores - scores.max(initial=-np.inf)) if len(scores) else scores
        values = [round(float(share), 6) for share in shares / shares.sum()] if len(scores) else []
        return (values[:-1], values[-1]) if unanswerable else (values, 0.0)


class ScoredSpan(NamedTuple):
    """A stretch of tokens with its score."""

    first: int
    """The index of the first token."""
    last: int
    """The index of the last token, which belongs to the stretch."""
    score: float
    """The score of the first token as beginning plus the score of the last token as end."""


def best_spans(scores: NDArray[np.float32], longest: int, count: int) -> list[ScoredSpan]:
    """The best stretches, the best first; on a tie the one that begins first, then the shorter one.

    Args:
        scores: (n, 2) scores of each token as beginning and as end.
        longest: the most tokens of a stretch.
        count: the number of stretches to find; fewer where there are no more.
    """
    n = len(scores)
    if not n:
        return []
    reach = min(longest, n)
    ends = np.concatenate([scores[:, 1], np.full(reach - 1, -np.inf, scores.dtype)])
    table = scores[:, :1] + np.lib.stride_tricks.sliding_window_view(ends, reach)  # (n, reach): first, length - 1
    flat = table.ravel()
    kept = flat >= np.partition(flat, -count)[-count] if count < len(flat) else np.isfinite(flat)
    indices = np.flatnonzero(kept & np.isfinite(flat))
    indices = indices[np.argsort(-flat[indices], kind="stable")][:count]
    return [ScoredSpan(int(p // reach), int(p // reach + p % reach), float(flat[p])) for p in indices]


def gathered(outputs: Sequence[NDArray[np.float32]], items: Items, longest: int, count: int) -> list[PredictedAnswer]:
    """The answer to each question, from all of its windows.

    Args:
        outputs: (1 + n, 2) scores of no answer and of the n tokens of each window, as beginning and as end.
        items: the windows; each target is an `AnswerWindow`.
        longest: the most tokens of an answer.
        count: the most candidates of a question.
    """
    size = int(items.owners.max(initial=-1)) + 1
    best: list[dict[tuple[int, int], float]] = [{} for _ in range(size)]
    none, contexts = [float("inf")] * size, [""] * size
    for owner, window, output in zip(items.owners, items.targets, outputs, strict=True):
        contexts[owner] = window.question.context
        none[owner] = min(none[owner], float(output[0].sum()))
        # Twice as many, since those that differ in whitespace alone are one, or in the marks of a letter.
        spans = best_spans(output[1:], longest, 2 * count)
        covered = [(int(window.begin[span.first]), int(window.end[span.last])) for span in spans]
        for span, (begin, end) in zip(spans, whole_clusters(contexts[owner], covered), strict=True):
            text = contexts[owner][begin:end]
            bounds = end - len(text.lstrip()), begin + len(text.rstrip())
            if bounds[0] < bounds[1]:
                best[owner][bounds] = max(span.score, best[owner].get(bounds, span.score))
    answers = []
    for context, scores, score in zip(contexts, best, none, strict=True):
        ranked = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:count]
        answers.append(
            PredictedAnswer(tuple(Candidate(context[slice(*at)], *at, value) for at, value in ranked), score)
        )
    return answers
