"""Log-probabilities of the ends of texts, such as answers after a question, by a run whose weights are loaded once."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run
from bakeoff.scoring.methods import WordStarts, require_reading
from bakeoff.scoring.options import Reading
from bakeoff.scoring.texts import TEXTS_AT_ONCE, scorer_of
from bakeoff.scoring.token_scores import ScoredText


class Completions:
    """A run that scores texts from a character on, and whole texts from their first.

    Texts are read as corpora are: in NFC, with single spaces. Where ends of lines are tokens, that of a text is scored.

    Args:
        run: a finished pre-trained run.
        reading: one of `methods.readings(run)`.
        device: auto, cpu, cuda or mps.
        processes: those that score the texts together.
        spaced: read texts that are scored whole with a space before them, as lm-eval does.

    Raises:
        UserError: the run cannot score in this way.
    """

    def __init__(
        self,
        run: Run,
        reading: Reading,
        *,
        device: str = "auto",
        processes: Processes = ALONE,
        spaced: bool = False,
    ) -> None:
        known = require_reading(run, reading)
        self.run, self.tokenizer, self.spaced = run, run.tokenizer, spaced
        self._words = WordStarts(self.tokenizer) if reading == "pseudo_words" else None
        self._scorer = scorer_of(run, known[reading], False, device, self._words is not None, processes=processes)
        self._end = self.tokenizer.end_of_line if reading == "forwards" else None

    def score(self, texts: Sequence[str], begins: Sequence[int] | None = None) -> NDArray[np.float64]:
        """(N,) the log-probability in nats of each text's tokens that reach beyond a character, given the others.

        Equal texts are scored once; a text without such tokens has the score 0. A score depends on the other texts by
        rounding alone.

        Args:
            texts: N texts.
            begins: (N,) the first character of the scored end of each; None: texts are scored whole.

        Raises:
            UserError: a score is not a finite number.
        """
        if begins is None:
            keys = [(clean(text), 0) for text in texts]
        else:
            keys = [(text if begin else clean(text), begin) for text, begin in zip(texts, begins, strict=True)]
        distinct = list(dict.fromkeys(keys))
        found: dict[tuple[str, int], float] = {}
        for first in range(0, len(distinct), TEXTS_AT_ONCE):
            part = distinct[first : first + TEXTS_AT_ONCE]
            for key, scores in zip(part, self._scorer.score(self._rows(part)), strict=True):
                found[key] = math.fsum(scores.log_probabilities)
                if not math.isfinite(found[key]):
                    raise UserError(f"{self.run.path}: the score of {key[0]!r} is {found[key]}, not a finite number")
        return np.array([found[key] for key in keys], np.float64)

    def sizes(self, texts: Sequence[str], begins: Sequence[int]) -> list[int]:
        """(N,) the number of tokens that `score` scores in each text."""
        return [len(row.ids) - row.first for row in self._rows(list(zip(texts, begins, strict=True)))]

    def unknown(self, texts: Sequence[str]) -> list[bool]:
        """(N,) whether a token of each text is the unknown one."""
        return [bool((ids == self.tokenizer.unknown).any()) for ids, _ in self._encoded([(text, 0) for text in texts])]

    def _encoded(self, keys: Sequence[tuple[str, int]]) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        return self.tokenizer.encode([" " * (self.spaced and not begin) + clean(text) for text, begin in keys])

    def _rows(self, keys: Sequence[tuple[str, int]]) -> list[ScoredText]:
        rows = []
        begun = [text for text, begin in keys if begin]
        placed = iter(self.tokenizer.encode_placed(begun) if begun else [])
        for (_, begin), (ids, starts) in zip(keys, self._encoded(keys), strict=True):
            first = int((next(placed).end <= begin).sum()) if begin else 0
            if self._end is not None and len(ids):  # a text is a line, whose end is a token
                ids = np.append(ids, self._end)
            rows.append(ScoredText(ids, first, starts=self._words.starts(ids, starts) if self._words else None))
        return rows
