"""Minimal pairs: of two sentences that differ in one point, is the good one likelier? (BLiMP: Warstadt et al. 2020)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.inference.readings import Reading, score_sentences
from bakeoff.inference.text_files import TextFile
from bakeoff.runs.run import Run

TIE = 1e-4
"""Nats; sentences whose scores are less apart tie, for other batches would change their order."""


class MinimalPair(NamedTuple):
    """Two sentences, the first of which a speaker of the language accepts."""

    good: str
    """The acceptable one."""
    bad: str
    """The other."""
    group: str
    """What the pair tests; accuracies are means over groups."""


class Preferences(NamedTuple):
    """How often the good sentence has the higher score."""

    groups: dict[str, float]
    """The accuracy in each group, a tie being half right."""
    ties: int
    """Pairs that tie."""
    pairs: int
    """All pairs."""

    @property
    def accuracy(self) -> float:
        """The mean over groups, however many pairs each has."""
        return math.fsum(self.groups.values()) / len(self.groups)


def read_minimal_pairs(
    path: str | Path, good: str = "sentence_good", bad: str = "sentence_bad", group: str = "UID"
) -> list[MinimalPair]:
    """The pairs of a .jsonl, .csv or .tsv file, each plain, .gz or .zst; the columns are called as BLiMP's are.

    Raises:
        UserError: no such file or column, no pairs in it, or a blank sentence or group.
    """
    file = TextFile(Path(path), [good, bad, group], given=True)
    pairs = [MinimalPair(*texts) for texts in file]
    if not pairs:
        raise UserError(f"{path}: the file holds no pairs")
    for number, pair in enumerate(pairs, 1):
        if not all(text.strip() for text in pair):
            raise UserError(f"{path}: pair {number:,} has a blank {good}, {bad} or {group}")
    return pairs


def preferences(pairs: Sequence[MinimalPair], scores: NDArray[np.float64]) -> Preferences:
    """What scores say of pairs.

    Args:
        pairs: N of them.
        scores: (N, 2) those of the good sentence and of the bad one.

    Raises:
        UserError: a score is not a number, which would decide nothing.
    """
    if np.isnan(scores).any():
        first = int(np.flatnonzero(np.isnan(scores).any(1))[0])
        raise UserError(f"pair {first + 1:,} ({pairs[first].group}): a score is not a number")
    good, bad = scores[:, 0], scores[:, 1]
    with np.errstate(invalid="ignore"):  # two infinite ones
        tied = (good == bad) | (np.abs(good - bad) < TIE)
    right = np.where(tied, 0.5, good > bad)
    of_group: dict[str, list[float]] = {}
    for pair, credit in zip(pairs, right.tolist(), strict=True):
        of_group.setdefault(pair.group, []).append(credit)
    groups = {group: math.fsum(found) / len(found) for group, found in of_group.items()}
    return Preferences(groups, int(tied.sum()), len(pairs))


def judge(run: Run, pairs: Sequence[MinimalPair], reading: Reading, *, device: str = "auto") -> Preferences:
    """How often a run prefers the good sentence; of the scores see `readings.Reading`.

    Args:
        run: a finished pre-trained run.
        pairs: the pairs.
        reading: one of `readings.readings(run)`.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run cannot read so, or a score is not a finite number.
    """
    scores = score_sentences(run, [text for pair in pairs for text in (pair.good, pair.bad)], reading, device=device)
    return preferences(pairs, scores.reshape(-1, 2))
