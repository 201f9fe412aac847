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

    Raises:
        UserError: the run cannot score in this way.
    """

    def __init__(self, run: Run, reading: Reading, *, device: str = "auto", processes: Processes = ALONE) -> None:
        known = require_reading(run, reading)
        self.run, self.tokenizer = run, run.tokenizer
        self._words = WordStarts(self.tokenizer) if reading == "pseudo_words" else None
        self._scorer = scorer_of(run, known[reading], False, device, self._words is not None, processes=processes)
        self._end = self.tokenizer.end_of_line if reading == "forwards" else None

    def score(
        self, texts: Sequence[str], begins: Sequence[int] | None = None, *, as_lm_eval: bool = False
    ) -> NDArray[np.float64]:
        """(N,) the log-probability in nats of each text's tokens that reach beyond a character, given the others.

        Equal texts are scored once; a text without such tokens has the score 0. A score depends on the other texts by
        rounding alone.

        Args:
            texts: N texts.
            begins: (N,) the first character of the scored end of each; None: texts are scored whole.
            as_lm_eval: read texts that are scored whole with a space before them, and score all tokens of a text but as
                many as what is before the scored end has alone, a space among them.

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
            for key, scores in zip(part, self._scorer.score(self._rows(part, as_lm_eval)), strict=True):
                found[key] = math.fsum(scores.log_probabilities)
                if not math.isfinite(found[key]):
                    raise UserError(f"{self.run.path}: the score of {key[0]!r} is {found[key]}, not a finite number")
        return np.array([found[key] for key in keys], np.float64)

    def sizes(self, texts: Sequence[str], begins: Sequence[int], *, as_lm_eval: bool = False) -> list[int]:
        """(N,) the number of tokens that `score` scores in each text."""
        return [len(row.ids) - row.first for row in self._rows(list(zip(texts, begins, strict=True)), as_lm_eval)]

    def unknown(self, texts: Sequence[str]) -> list[bool]:
        """(N,) whether a token of each text is the unknown one."""
        encoded = self.tokenizer.encode([clean(text) for text in texts])
        return [bool((ids == self.tokenizer.unknown).any()) for ids, _ in encoded]

    def _rows(self, keys: Sequence[tuple[str, int]], as_lm_eval: bool) -> list[ScoredText]:
        encoded = self.tokenizer.encode([" " * (as_lm_eval and not begin) + clean(text) for text, begin in keys])
        rows = []
        firsts = iter(self._firsts([(text, begin) for text, begin in keys if begin], as_lm_eval))
        for (_, begin), (ids, starts) in zip(keys, encoded, strict=True):
            first = next(firsts) if begin else 0
            if self._end is not None and len(ids):  # a text is a line, whose end is a token
                ids = np.append(ids, self._end)
            rows.append(ScoredText(ids, first, starts=self._words.starts(ids, starts) if self._words else None))
        return rows

    def _firsts(self, begun: Sequence[tuple[str, int]], as_lm_eval: bool) -> list[int]:
        """The first scored token of each text."""
        if not begun:
            return []
        if as_lm_eval:
            return [len(ids) for ids, _ in self.tokenizer.encode([clean(text[:begin]) for text, begin in begun])]
        placed = self.tokenizer.encode_placed([text for text, _ in begun])
        return [int((each.end <= begin).sum()) for each, (_, begin) in zip(placed, begun, strict=True)]
