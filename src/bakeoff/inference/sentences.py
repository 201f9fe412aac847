"""Log-probabilities of sentences in memory, in any of the ways in which a run can score them."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.inference.readings import Reading, WordStarts, require_reading
from bakeoff.inference.scoring import TEXTS_AT_ONCE, scorer_of
from bakeoff.inference.token_scores import ScoredText
from bakeoff.reading.aligned import clean
from bakeoff.runs.run import Run


def score_sentences(
    run: Run, sentences: Sequence[str], reading: Reading, *, device: str = "auto"
) -> NDArray[np.float64]:
    """The log-probability of each sentence in nats, (N,).

    Sentences are read as corpora are: in NFC, with single spaces. Equal sentences are scored once; a blank sentence has
    the score 0. A score depends on the other sentences by rounding alone.

    Args:
        run: a finished pre-trained run.
        sentences: N sentences.
        reading: one of `readings(run)`.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run cannot score in this way, or a score is not a finite number.
    """
    known = require_reading(run, reading)
    scorer = scorer_of(run, known[reading], False, device, whole_words=reading == "pseudo_words")
    words = WordStarts(run.tokenizer)
    end = run.tokenizer.end_of_line if reading == "forwards" else None
    texts = [clean(sentence) for sentence in sentences]
    distinct = list(dict.fromkeys(texts))
    found: dict[str, float] = {}
    for first in range(0, len(distinct), TEXTS_AT_ONCE):
        part = distinct[first : first + TEXTS_AT_ONCE]
        rows = []
        for ids, starts in run.tokenizer.encode(part):
            if end is not None and len(ids):  # a sentence is a line, whose end is a token
                ids = np.append(ids, end)
            rows.append(ScoredText(ids, 0, starts=words.starts(ids, starts) if reading == "pseudo_words" else None))
        for text, scores in zip(part, scorer.score(rows), strict=True):
            found[text] = math.fsum(scores.log_probabilities)
            if not math.isfinite(found[text]):
                raise UserError(f"{run.path}: the score of {text!r} is {found[text]}, not a finite number")
    return np.array([found[text] for text in texts], np.float64)
