"""Questions with their contexts in windows, and what is learned in each: where the answer begins and where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat
from bakeoff.tokenizer.offsets import PlacedTokens


class TokenSpan(NamedTuple):
    """An answer in tokens."""

    first: int
    """Its first token."""
    last: int
    """Its last token."""


NOWHERE = TokenSpan(-1, -1)
"""The place of an answer that the context does not have."""


@dataclass(frozen=True)
class AnswerWindow:
    """What is asked for in a window, of n tokens of the context."""

    question: Question
    """The question."""
    begin: NDArray[np.int64]
    """(n,) the character of the context at which each token begins."""
    end: NDArray[np.int64]
    """(n,) the character behind each token."""
    second: int
    """The place in the row of the first of them."""
    whole: int
    """The place of the special token that stands for no answer in this window."""
    target: TokenSpan | None
    """What is learned: places of the first and the last token of the answer, counted from 1, or 0 twice where it is not
    in this window; None: nothing."""

    @property
    def places(self) -> NDArray[np.int64]:
        """(1 + n,) the places in the row that are told apart: no answer, and the context's tokens."""
        return np.concatenate([[self.whole], self.second + np.arange(len(self.begin))])


class Windows(NamedTuple):
    """The windows of Q questions; N rows."""

    encoded: EncodedRows
    """N rows."""
    owners: NDArray[np.int64]
    """(N,) the question of each, in rising order."""
    windows: list[AnswerWindow]
    """(N,) what is asked for in each."""
    spans: list[TokenSpan | None]
    """(Q,) the answer of each question in its context; None where nothing can be learned."""
    cut: int
    """How many questions were too long."""


def answer_windows(examples: Sequence[Question], format: InputFormat, longest: int, stride: int) -> Windows:
    """The windows of some questions.

    Args:
        examples: the questions.
        format: of the rows.
        longest: the most tokens of a question.
        stride: tokens from one window to the next, at most.
    """
    # Many questions have the same context, which is encoded once.
    texts = list(dict.fromkeys(text for each in examples for text in each.texts))
    tokens = dict(zip(texts, format.tokenizer.encode_placed(texts), strict=True))
    questions, contexts = ([tokens[each.texts[side]] for each in examples] for side in (0, 1))
    found = format.windows([each.ids for each in questions], [each.ids for each in contexts], longest, stride)
    spans = [_span(each, context) for each, context in zip(examples, contexts, strict=True)]
    windows = []
    rows = zip(found.owners, found.first, found.counts, found.encoded.second, found.whole, strict=True)
    for owner, first, count, second, whole in (map(int, row) for row in rows):
        context, span, target = contexts[owner], spans[owner], None
        if span is not None:
            inside = first <= span.first and span.last < first + count
            target = TokenSpan(span.first - first + 1, span.last - first + 1) if inside else TokenSpan(0, 0)
        begin, end = (side[first : first + count] for side in (context.begin, context.end))
        windows.append(AnswerWindow(examples[owner], begin, end, second, whole, target))
    return Windows(found.encoded, found.owners, windows, spans, found.cut)


def _span(question: Question, context: PlacedTokens) -> TokenSpan | None:
    """The first and the last token of a question's first answer that stands in its context.

    NOWHERE, which no window has, where the question has no answer; None where nothing can be learned.
    """
    if not question.answers:
        return None if question.answers is None else NOWHERE
    for answer in question.answers:
        if answer.start is None or answer.end is None:
            continue
        # By the stretches that they stand for, so that a token of which the answer is a part belongs to it.
        tokens = np.flatnonzero((context.begin < answer.end) & (context.end > answer.start))
        if len(tokens):
            return TokenSpan(int(tokens[0]), int(tokens[-1]))
    return None


def window_loss(scores: Tensor, windows: Sequence[AnswerWindow]) -> Tensor:
    """The mean loss of some windows; that of a window is the mean of -log p(first token) and -log p(last token).

    Both are softmax over the tokens of the context and the place of no answer alone; 0, without a gradient, where
    nothing is learned in any of them.

    Args:
        scores: (B, T, 2) of each token as beginning and as end.
        windows: (B,) what is asked for.
    """
    told = torch.zeros(scores.shape[:2], dtype=torch.bool)  # (B, T) the places that are told apart
    targets = torch.zeros((len(windows), 2), dtype=torch.int64)
    for row, window in enumerate(windows):
        places = torch.from_numpy(window.places)
        told[row, places] = True
        if window.target is not None:
            targets[row] = places[list(window.target)]
    learned = torch.tensor([window.target is not None for window in windows], device=scores.device)
    table = scores.masked_fill(~told.to(scores.device)[..., None], float("-inf")).log_softmax(1)  # (B, T, 2)
    right = table.gather(1, targets.to(scores.device)[:, None]).squeeze(1)  # (B, 2)
    return -right[learned].mean() if learned.any() else scores.sum() * 0


def mean_window_loss(outputs: Sequence[NDArray[np.float32]], windows: Sequence[AnswerWindow]) -> float:
    """The mean loss of windows from (1 + n, 2) scores at the places of each, in nats."""
    losses = [
        -float(torch.from_numpy(own).log_softmax(0)[list(window.target), [0, 1]].mean())
        for own, window in zip(outputs, windows, strict=True)
        if window.target is not None
    ]
    return float(np.mean(losses)) if losses else 0.0
