"""Questions with their contexts as windows, and the target of each: the first and the last token of the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.machine.transfer import sent
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat
from bakeoff.tokenizer.offsets import PlacedTokens


class TokenSpan(NamedTuple):
    """The first and the last token of an answer, by index."""

    first: int
    """The index of the first token."""
    last: int
    """The index of the last token, which belongs to the answer."""


NOWHERE = TokenSpan(-1, -1)
"""The span of a question without an answer, which no window contains."""


@dataclass(frozen=True)
class AnswerWindow:
    """A window of n tokens of the context, and its target."""

    question: Question
    """The question whose context the window is of."""
    begin: NDArray[np.int64]
    """(n,) the character of the context at which each token begins."""
    end: NDArray[np.int64]
    """(n,) the character of the context after each token."""
    second: int
    """The position in the row of the window's first token of the context."""
    whole: int
    """The position in the row of the special token that stands for no answer in this window."""
    target: TokenSpan | None
    """The first and the last token of the answer, counted from 1 within the window; (0, 0) where the answer is not in
    this window; None where the answer is unknown and the window has no loss."""

    @property
    def positions(self) -> NDArray[np.int64]:
        """(1 + n,) the positions in the row over which the softmax goes: no answer, then the tokens of the context."""
        return np.concatenate([[self.whole], self.second + np.arange(len(self.begin))])


class Windows(NamedTuple):
    """The windows of Q questions; N windows, each a row."""

    encoded: EncodedRows
    """The N rows."""
    owners: NDArray[np.int64]
    """(N,) the index of the question of each row, in rising order."""
    windows: list[AnswerWindow]
    """(N,) the window in each row."""
    spans: list[TokenSpan | None]
    """(Q,) the span of each question's answer in its context: NOWHERE without an answer, None where it is unknown."""
    cut: int
    """The number of questions that were too long, and were cut."""

    def lengths(self) -> NDArray[np.int64]:
        """(Q,) the number of tokens of each question's answer; 0 where it has none, or where it is unknown."""
        known = [NOWHERE if span is None else span for span in self.spans]
        return np.array([0 if span == NOWHERE else span.last - span.first + 1 for span in known], np.int64)

    def held(self) -> NDArray[np.bool_]:
        """(Q,) whether some window of each question has the whole of its answer."""
        held = np.zeros(len(self.spans), bool)
        for owner, window in zip(self.owners, self.windows, strict=True):
            held[owner] |= window.target is not None and window.target.first > 0
        return held


def answer_windows(examples: Sequence[Question], format: InputFormat, longest: int, stride: int) -> Windows:
    """The windows of questions over their contexts.

    Args:
        examples: the questions.
        format: the format of the rows.
        longest: the most tokens of a question; the rest is cut off.
        stride: the most tokens from the beginning of one window to the beginning of the next.
    """
    # Many questions have the same context, which is encoded once.
    texts = list(dict.fromkeys(text for each in examples for text in each.texts))
    tokens = dict(zip(texts, format.tokenizer.encode_placed(texts), strict=True))
    questions, contexts = ([tokens[each.texts[side]] for each in examples] for side in (0, 1))
    pairs = format.windows([each.ids for each in questions], [each.ids for each in contexts], longest, stride)
    spans = [_span(each, context) for each, context in zip(examples, contexts, strict=True)]
    windows = []
    rows = zip(pairs.owners, pairs.first, pairs.counts, pairs.encoded.second, pairs.whole, strict=True)
    for owner, first, count, second, whole in (map(int, row) for row in rows):
        context, span, target = contexts[owner], spans[owner], None
        if span is not None:
            inside = first <= span.first and span.last < first + count
            target = TokenSpan(span.first - first + 1, span.last - first + 1) if inside else TokenSpan(0, 0)
        begin, end = (side[first : first + count] for side in (context.begin, context.end))
        windows.append(AnswerWindow(examples[owner], begin, end, second, whole, target))
    return Windows(pairs.encoded, pairs.owners, windows, spans, pairs.cut)


def _span(question: Question, context: PlacedTokens) -> TokenSpan | None:
    """The tokens of the first of a question's answers that stands in its context.

    NOWHERE where the question has no answer; None where its answers are unknown or do not stand there.
    """
    if not question.answers:
        return None if question.answers is None else NOWHERE
    for answer in question.answers:
        if answer.start is None or answer.end is None:
            continue
        # Compared by characters, so that a token that holds more than the answer belongs to it, too.
        tokens = np.flatnonzero((context.begin < answer.end) & (context.end > answer.start))
        if len(tokens):
            return TokenSpan(int(tokens[0]), int(tokens[-1]))
    return None


def window_loss(scores: Tensor, windows: Sequence[AnswerWindow]) -> Tensor:
    """The mean loss of windows; the loss of a window is the mean of -log p(first token) and -log p(last token).

    Both probabilities are softmaxes over `AnswerWindow.positions` alone. Windows without a target are left out; where
    none has a target the loss is 0, and so are its gradients.

    Args:
        scores: (B, T, 2) the scores of each token as the first and as the last of the answer.
        windows: (B,) the window in each row.
    """
    mask = torch.zeros(scores.shape[:2], dtype=torch.bool)  # (B, T) the positions of a window
    targets = torch.zeros((len(windows), 2), dtype=torch.int64)
    for row, window in enumerate(windows):
        positions = torch.from_numpy(window.positions)
        mask[row, positions] = True
        if window.target is not None:
            targets[row] = positions[list(window.target)]
    learned = torch.tensor([row for row, window in enumerate(windows) if window.target is not None], dtype=torch.int64)
    table = scores.masked_fill(~sent(mask, scores.device)[..., None], float("-inf")).log_softmax(1)  # (B, T, 2)
    right = table.gather(1, sent(targets, scores.device)[:, None]).squeeze(1)  # (B, 2)
    return -right[sent(learned, scores.device)].mean() if len(learned) else scores.sum() * 0


def mean_window_loss(outputs: Sequence[NDArray[np.float32]], windows: Sequence[AnswerWindow]) -> float:
    """The mean loss of windows in nats, from the (1 + n, 2) scores at the positions of each; 0 without targets."""
    losses = [
        -float(torch.from_numpy(output).log_softmax(0)[list(window.target), [0, 1]].mean())
        for output, window in zip(outputs, windows, strict=True)
        if window.target is not None
    ]
    return float(np.mean(losses)) if losses else 0.0
