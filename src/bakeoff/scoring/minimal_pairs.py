"""Minimal pairs of sentences, of which the good one should be likelier (BLiMP, Warstadt et al. 2020)."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.display.wording import listed
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.reading.tables import open_table
from bakeoff.reading.text_files import TextFile
from bakeoff.runs.run import Run
from bakeoff.scoring.completions import Completions
from bakeoff.scoring.options import Reading

TIE = 1e-4
"""Sentences whose scores differ by less, in nats, tie: rounding in other batches could change their order."""


KINDS = ("field", "linguistics_term")
"""Columns of BLiMP's files that join its groups into larger kinds, such as syntax or island effects."""


class MinimalPair(NamedTuple):
    """An acceptable and an unacceptable sentence that differ in one point."""

    good: str
    """The acceptable sentence."""
    bad: str
    """The unacceptable sentence."""
    group: str
    """The phenomenon that the pair tests; accuracies are means over groups."""
    kinds: tuple[str, ...] = ()
    """The larger kinds that the group belongs to, one for each of `KINDS` that the file has as a column."""


class Preferences(NamedTuple):
    """How often a model gives the good sentence the higher score."""

    groups: dict[str, float]
    """The accuracy in each group; a tie counts as half right."""
    sizes: dict[str, int]
    """The number of pairs in each group."""
    ties: int
    """Number of pairs that tie."""
    pairs: int
    """Number of all pairs."""
    kinds: list[dict[str, float]]
    """The accuracy of each kind, the mean over its groups; one mapping for each column of kinds."""
    unknown: int = 0
    """Number of pairs with an unknown token; sentences that differ in unknown tokens alone tie."""

    @property
    def accuracy(self) -> float:
        """The mean accuracy over groups, which count alike whatever their number of pairs."""
        return _mean(self.groups)

    @property
    def accuracy_of_pairs(self) -> float:
        """The mean accuracy over pairs, in which a group counts as often as it has pairs."""
        return math.fsum(self.groups[group] * size for group, size in self.sizes.items()) / self.pairs


def read_minimal_pairs(
    path: str | Path, good: str = "sentence_good", bad: str = "sentence_bad", group: str | None = "UID"
) -> list[MinimalPair]:
    """The pairs of a .jsonl, .csv or .tsv file, plain, .gz or .zst; columns are named as BLiMP's by default.

    Args:
        path: the file.
        good: the column of the acceptable sentences.
        bad: the column of the unacceptable sentences.
        group: the column of the tested phenomena; None: all pairs are one group.

    Raises:
        UserError: there is no such file or column, the file has no pairs, or a sentence or group is blank.
    """
    columns = [good, bad, *([] if group is None else [group])]
    kinds = [name for name in kinds_of(path) if name not in columns]
    file = TextFile(Path(path), [*columns, *kinds], given=True, options=())
    pairs = []
    for number, texts in enumerate(file, 1):
        if blank := [name for name, text in zip([*columns, *kinds], texts, strict=True) if not text.strip()]:
            raise UserError(
                f"{path}: pair {number:,} has a blank {listed(blank, 'and')}; mend it, or leave the pair out"
            )
        tests = "all" if group is None else texts[2]
        pairs.append(MinimalPair(texts[0], texts[1], tests, texts[len(columns) :]))
    if not pairs:
        raise UserError(f"{path}: the file holds no pairs")
    return pairs


def kinds_of(path: str | Path) -> list[str]:
    """The names of `KINDS` that a file has as columns.

    Raises:
        UserError: there is no such file, or it has no columns.
    """
    file = TextFile(Path(path), [], given=True, options=())
    names = open_table(file.path, "replace").names()
    return [name for name in KINDS if name in names]


def preferences(pairs: Sequence[MinimalPair], scores: NDArray[np.float64]) -> Preferences:
    """The preferences of a model between the sentences of pairs.

    Args:
        pairs: N pairs.
        scores: (N, 2) log-probabilities of the good and of the bad sentences in nats.

    Raises:
        UserError: a score is not a number.
    """
    right, tied = _credits(pairs, scores)
    groups = _by_group(pairs, right)
    kinds = []
    for sort in range(len(pairs[0].kinds) if pairs else 0):
        of_kind: dict[str, list[int]] = {}
        for number, pair in enumerate(pairs):
            of_kind.setdefault(pair.kinds[sort], []).append(number)
        kinds.append({kind: _mean(_by_group([pairs[p] for p in own], right[own])) for kind, own in of_kind.items()})
    sizes = dict(Counter(pair.group for pair in pairs))
    return Preferences(groups, sizes, int(tied.sum()), len(pairs), kinds)


def _credits(
    pairs: Sequence[MinimalPair], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(N,) 1 for each pair whose good sentence is likelier, 0.5 for a tie, and 0 else; and which pairs tie."""
    if np.isnan(scores).any():
        first = int(np.flatnonzero(np.isnan(scores).any(1))[0])
        raise UserError(f"pair {first + 1:,} ({pairs[first].group}): a score is not a number")
    good, bad = scores[:, 0], scores[:, 1]
    with np.errstate(invalid="ignore"):  # two infinite ones
        tied = (good == bad) | (np.abs(good - bad) < TIE)
    return np.where(tied, 0.5, good > bad), tied


def credits_of(
    run: Run, pairs: Sequence[MinimalPair], reading: Reading, *, device: str = "auto"
) -> NDArray[np.float64]:
    """(N,) what each pair adds to a run's accuracy: 1, 0, or 0.5 for a tie; arguments and errors as of `judge`."""
    return _credits(pairs, _scores(run, pairs, reading, device)[0])[0]


def _by_group(pairs: Sequence[MinimalPair], right: NDArray[np.float64]) -> dict[str, float]:
    """The accuracy of each group."""
    of_group: dict[str, list[float]] = {}
    for pair, credit in zip(pairs, right.tolist(), strict=True):
        of_group.setdefault(pair.group, []).append(credit)
    return {group: math.fsum(found) / len(found) for group, found in of_group.items()}


def _mean(groups: dict[str, float]) -> float:
    return math.fsum(groups.values()) / len(groups)


def judge(
    run: Run,
    pairs: Sequence[MinimalPair],
    reading: Reading,
    *,
    device: str = "auto",
    processes: Processes = ALONE,
) -> Preferences:
    """How often a run prefers the good sentence of a pair.

    Args:
        run: a finished pre-trained run.
        pairs: the pairs.
        reading: one of `readings.readings(run)`; `readings.Reading` explains the scores.
        device: auto, cpu, cuda or mps.
        processes: those that score the sentences together.

    Raises:
        UserError: the run cannot score in this way, a score is not a finite number, or each pair has a sentence of
            unknown tokens alone.
    """
    scores, unknown = _scores(run, pairs, reading, device, processes)
    return preferences(pairs, scores)._replace(unknown=unknown)


def _scores(
    run: Run, pairs: Sequence[MinimalPair], reading: Reading, device: str, processes: Processes = ALONE
) -> tuple[NDArray[np.float64], int]:
    """(N, 2) the scores of the sentences, equal where one cannot be judged, and the number of pairs with unknowns.

    Raises:
        UserError: as of `judge`.
    """
    sentences = [text for pair in pairs for text in (pair.good, pair.bad)]
    hidden = [run.tokenizer.hidden([clean(sentence)]) for sentence in sentences]
    unseen = np.array([each.all_unknown for each in hidden]).reshape(-1, 2).any(1)
    if unseen.all():
        raise UserError(f"{run.path}: no pair can be judged, for each has a sentence of unknown tokens alone")
    scores = score_sentences(run, sentences, reading, device=device, processes=processes).reshape(-1, 2)
    scores[unseen] = 0.0  # a tie: what is unknown has no probability
    unknown = np.array([each.unknown > 0 or each.hidden > 0 for each in hidden]).reshape(-1, 2).any(1)
    return scores, int(unknown.sum())


def score_sentences(
    run: Run,
    sentences: Sequence[str],
    reading: Reading,
    *,
    device: str = "auto",
    processes: Processes = ALONE,
) -> NDArray[np.float64]:
    """The log-probability of each sentence in nats, (N,).

    Sentences are read as corpora are: in NFC, with single spaces. Equal sentences are scored once; a blank sentence has
    the score 0. A score depends on the other sentences by rounding alone.

    Args:
        run: a finished pre-trained run.
        sentences: N sentences.
        reading: one of `readings(run)`.
        device: auto, cpu, cuda or mps.
        processes: those that score the sentences together.

    Raises:
        UserError: the run cannot score in this way, or a score is not a finite number.
    """
    return Completions(run, reading, device=device, processes=processes).score(sentences)
