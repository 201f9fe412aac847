"""The choice of the tokens of a row that an objective predicts: single ones, words, or runs. N examples, T length."""

from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

RunLengths = Literal["inverse", "geometric", "uniform"]

STOP = 0.2
"""The p of the geometric distribution of the lengths of SpanBERT's spans."""


def free_sources(examples: Examples, tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(N, T) positions in the text of the tokens that an objective may choose, -1 elsewhere.

    An objective may choose ordinary tokens that no earlier objective has taken. The token for unknown text counts as a
    special token, because nothing can be learnt from it.
    """
    free = examples.row.ids != (-1 if tokenizer.unknown is None else tokenizer.unknown)
    if examples.taken is not None:
        free &= ~examples.taken
    return np.where(free, examples.sources, -1)


class TargetChoice:
    """Chooses a share of each row's tokens.

    Args:
        rate: the share of the tokens, at least one in a row that has any.
        ngram: choose runs of up to this many words.
        lengths: the distribution of the runs' lengths: the probability of n words is proportional to 1/n (inverse), to
            (1 - stop)^n (geometric), or equal for all n (uniform).
        whole_word: choose all tokens of a word together, as runs do in any case.
        span_end: word: runs of n words; token: runs of n tokens from the start of a word on.
        stop: p of the geometric distribution.
        of: the unit of the runs' lengths: words, or tokens; runs of tokens begin and end anywhere in a word.
    """

    def __init__(
        self,
        rate: float,
        ngram: int = 1,
        lengths: RunLengths = "inverse",
        whole_word: bool = False,
        span_end: Literal["word", "token"] = "word",
        stop: float = STOP,
        of: Literal["words", "tokens"] = "words",
    ) -> None:
        self.rate, self.ngram, self.whole_word, self.span_end, self.of = rate, ngram, whole_word, span_end, of
        numbers = np.arange(1, ngram + 1)
        probability = {"inverse": 1 / numbers, "geometric": (1 - stop) ** numbers, "uniform": np.ones(ngram)}[lengths]
        self.bounds = np.cumsum(probability / probability.sum())[:-1]

    def choose(
        self,
        sources: NDArray[np.int64],
        split: Split,
        draws: Draws,
        backwards: NDArray[np.bool_] | None = None,
        rates: NDArray[np.float64] | None = None,
    ) -> NDArray[np.bool_]:
        """(N, T) True for predicted tokens, from (N, T) positions in the text, -1 where there is no ordinary token.

        (N,) `backwards` is True for rows that read the text from its end; their words are found in the order of the
        text. (N,) `rates` are shares of single rows, which replace the common one.
        """
        if backwards is not None:
            turn = _turn(backwards, sources.shape[1])
            chosen = self.choose(np.take_along_axis(sources, turn, 1), split, draws, rates=rates)
            return np.take_along_axis(chosen, turn, 1)
        length = sources.shape[1]
        ordinary = sources >= 0
        wanted = np.maximum(np.rint(ordinary.sum(1) * (self.rate if rates is None else rates)), ordinary.any(1)).astype(
            np.int64
        )  # (N,)
        units = self.units(sources, split, draws)
        if self.span_end == "token":
            ordinary &= units >= 0
            units = np.maximum(units, 0)
        score = draws.words("mask order", length).astype(np.int64)
        score = np.take_along_axis(score, units, 1) * length + units  # equal within a unit, different between units
        score[~ordinary] = np.iinfo(np.int64).max
        order = np.argsort(score, axis=1, kind="stable")  # (N, T) positions in the order in which they are hidden
        column = np.arange(length)
        taken = column < wanted[:, None]
        if self.whole_word or self.ngram > 1:
            ordered = np.take_along_axis(units, order, 1)
            starts_unit = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
            begin = np.maximum.accumulate(np.where(starts_unit, column, 0), axis=1)  # where each position's unit begins
            # Units are taken until there are enough tokens, the last one whole: were it left out at times, long ones
            # would be more often than short ones. What it adds too much on average is subtracted beforehand.
            enough = wanted - overshoot(units, ordinary)
            enough = np.floor(enough + draws.uniform("enough", 1)[:, 0])
            taken = begin < np.maximum(enough, 1)[:, None]
        chosen = np.zeros_like(ordinary)
        np.put_along_axis(chosen, order, taken, axis=1)
        return chosen & ordinary

    def units(
        self, sources: NDArray[np.int64], split: Split, draws: Draws, backwards: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """(N, T) the number of the unit that hides each position, a token, a word or a run; -1 outside of all runs."""
        if backwards is not None:
            turn = _turn(backwards, sources.shape[1])
            return np.take_along_axis(self.units(np.take_along_axis(sources, turn, 1), split, draws), turn, 1)
        length = sources.shape[1]
        if not self.whole_word and self.ngram == 1:
            return np.broadcast_to(np.arange(length), sources.shape)
        ordinary = sources >= 0
        # Words and runs also end at a special token, and where the text is not continued.
        broken = np.pad(sources[:, 1:] != sources[:, :-1] + 1, ((0, 0), (1, 0)), constant_values=True)
        starts = broken | (split.starts_word(np.maximum(sources, 0)) if self.of == "words" else ordinary)
        words = np.cumsum(starts & ordinary, 1) - 1
        if self.ngram == 1:
            return cast(NDArray[np.int64], np.maximum(words, 0))
        # Runs of 1, 2, ... words are laid side by side over the row; choosing among them evenly keeps p(n).
        lengths = np.searchsorted(self.bounds, draws.uniform("ngram", length), side="right") + 1  # (N, T)
        if self.span_end == "token":
            return _runs_of_tokens(starts & ordinary, ordinary, lengths)
        ends = np.cumsum(lengths, 1)
        first_of_run = np.zeros((len(sources), length + 1), np.bool_)
        rows = np.broadcast_to(np.arange(len(sources))[:, None], ends.shape)
        first_of_run[rows, np.minimum(ends, length)] = True
        first_of_run[:, 0] = True
        begins = starts & np.take_along_axis(first_of_run, np.maximum(words, 0), 1)
        return cast(NDArray[np.int64], np.maximum(np.cumsum((begins | broken) & ordinary, 1) - 1, 0))


def _turn(backwards: NDArray[np.bool_], length: int) -> NDArray[np.int64]:
    """(N, T) positions of rows in the order of the text; (N,) `backwards` is True for rows that read from its end."""
    return np.where(backwards[:, None], np.arange(length)[::-1], np.arange(length))


def overshoot(units: NDArray[np.int64], ordinary: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(N,) the mean number of tokens too many when units are taken in random order until a number of tokens is reached.

    It is (sum s^2 / sum s - 1) / 2 over the sizes s of a row's units (Feller 1971, An Introduction to Probability
    Theory and Its Applications II, section XI.4), where the number is large beside s.

    Args:
        units: (N, T) the unit of each position.
        ordinary: (N, T) True for positions that count.
    """
    count, length = units.shape
    flat = (units + length * np.arange(count)[:, None])[ordinary]
    sizes = np.bincount(flat, minlength=count * length).reshape(count, length)
    result: NDArray[np.float64] = ((sizes**2).sum(1) / np.maximum(sizes.sum(1), 1) - 1) / 2
    return np.maximum(result, 0)


def _runs_of_tokens(
    starts: NDArray[np.bool_], ordinary: NDArray[np.bool_], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(N, T) the run of each position, or -1; run k begins at the next start of a word and has lengths[k] tokens."""
    rows = np.arange(len(starts))
    units = np.full(starts.shape, -1, np.int64)
    run = np.full(len(starts), -1)
    left = np.zeros(len(starts), np.int64)
    for position in range(starts.shape[1]):
        begins = (left <= 0) & starts[:, position]
        run += begins
        left = np.where(begins, lengths[rows, run], left)
        inside = (left > 0) & ordinary[:, position]
        units[inside, position] = run[inside]
        left -= 1
    return units
