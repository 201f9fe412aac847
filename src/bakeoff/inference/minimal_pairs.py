"""Minimal pairs: of two sentences that differ in one point, is the good one likelier? (BLiMP: Warstadt et al. 2020)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.inference.readings import Reading, score_sentences
from bakeoff.inference.text_files import TextFile
from bakeoff.reading.files import LineReader
from bakeoff.reading.records import record_names
from bakeoff.runs.run import Run

TIE = 1e-4
"""Nats; sentences whose scores are less apart tie, for other batches would change their order."""


KINDS = ("field", "linguistics_term")
"""Columns of BLiMP's files that gather its groups into larger kinds: syntax, island effects."""


class MinimalPair(NamedTuple):
    """Two sentences, the first of which a speaker of the language accepts."""

    good: str
    """The acceptable one."""
    bad: str
    """The other."""
    group: str
    """What the pair tests; accuracies are means over groups."""
    kinds: tuple[str, ...] = ()
    """The larger kinds that its group belongs to, one of each of `KINDS` that the file has."""


class Preferences(NamedTuple):
    """How often the good sentence has the higher score."""

    groups: dict[str, float]
    """The accuracy in each group, a tie being half right."""
    ties: int
    """Pairs that tie."""
    pairs: int
    """All pairs."""
    kinds: list[dict[str, float]]
    """For each sort of larger kinds the accuracy of each kind, the mean over its groups."""

    @property
    def accuracy(self) -> float:
        """The mean over groups, however many pairs each has."""
        return _mean(self.groups)


def read_minimal_pairs(
    path: str | Path, good: str = "sentence_good", bad: str = "sentence_bad", group: str | None = "UID"
) -> list[MinimalPair]:
    """The pairs of a .jsonl, .csv or .tsv file, each plain, .gz or .zst; the columns are called as BLiMP's are.

    Args:
        path: the file.
        good: the column with the acceptable sentences.
        bad: the one with the others.
        group: the one with what a pair tests; None: all pairs are one group.

    Raises:
        UserError: no such file or column, no pairs in it, or a blank sentence or group.
    """
    columns = [good, bad, *([] if group is None else [group])]
    kinds = [name for name in kinds_of(path) if name not in columns]
    file = TextFile(Path(path), [*columns, *kinds], given=True, options=())
    pairs = []
    for number, texts in enumerate(file, 1):
        if not all(text.strip() for text in texts):
            raise UserError(f"{path}: pair {number:,} has a blank {listed([*columns, *kinds], 'or')}")
        tests = "all" if group is None else texts[2]
        pairs.append(MinimalPair(texts[0], texts[1], tests, texts[len(columns) :]))
    if not pairs:
        raise UserError(f"{path}: the file holds no pairs")
    return pairs


def kinds_of(path: str | Path) -> list[str]:
    """Which of `KINDS` a file has as columns.

    Raises:
        UserError: there is no such file, or it has no columns.
    """
    file = TextFile(Path(path), [], given=True)
    names = record_names(file.path, LineReader(file.path, "replace"))
    return [name for name in KINDS if name in names]


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
    groups = _by_group(pairs, right)
    kinds = []
    for sort in range(len(pairs[0].kinds) if pairs else 0):
        of_kind: dict[str, list[int]] = {}
        for place, pair in enumerate(pairs):
            of_kind.setdefault(pair.kinds[sort], []).append(place)
        kinds.append({kind: _mean(_by_group([pairs[p] for p in own], right[own])) for kind, own in of_kind.items()})
    return Preferences(groups, int(tied.sum()), len(pairs), kinds)


def _by_group(pairs: Sequence[MinimalPair], right: NDArray[np.float64]) -> dict[str, float]:
    """The share of each group's pairs that are right."""
    of_group: dict[str, list[float]] = {}
    for pair, credit in zip(pairs, right.tolist(), strict=True):
        of_group.setdefault(pair.group, []).append(credit)
    return {group: math.fsum(found) / len(found) for group, found in of_group.items()}


def _mean(groups: dict[str, float]) -> float:
    return math.fsum(groups.values()) / len(groups)


def judge(run: Run, pairs: Sequence[MinimalPair], reading: Reading, *, device: str = "auto") -> Preferences:
    """How often a run prefers the good sentence; `readings.Reading` says what the scores are.

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
