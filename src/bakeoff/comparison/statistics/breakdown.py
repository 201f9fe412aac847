"""Where recipes differ on a task: on rows of which length, and on which rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.comparison.statistics.groups import Group
from bakeoff.comparison.statistics.pairs import Spread, describe
from bakeoff.config import Config, Record
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task_config import TaskConfig

FEWEST_ROWS = 30
"""The fewest test rows that are divided by their length."""

MOST_ROWS = 12
"""The most rows that are shown."""

OF_A_KIND = 3
"""The most of these rows on which the same recipes are better than the others, as long as there are rows of others."""

EXCERPT = 240
"""Characters of a row's text that are kept."""


class TestRow(Record):
    """A row of a task's test, as a comparison keeps it beside its baselines."""

    __test__ = False  # or pytest takes it for a test

    text: str
    """The beginning of the row's texts."""
    characters: int
    """The number of characters of all of its texts."""
    words: int | None
    """The number of words, where an example is a list of them; None: it is one text or several."""

    @property
    def key(self) -> str:
        """What rows with the same texts have in common."""
        return f"{self.characters} {self.text}"

    @classmethod
    def of(cls, example: Any, config: TaskConfig) -> "TestRow":
        """The row of an example."""
        words = len(example.texts) if config.head == "tokens" and config.sides == 1 else None
        text = (" | " if words is None else " ").join(example.texts)
        excerpt = text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"
        return cls(text=excerpt, characters=sum(map(len, example.texts)), words=words)


class LengthScores(Config):
    """The scores on the test rows of some lengths, a third of all or nearly so."""

    shortest: int
    """Characters of the shortest of these rows."""
    longest: int
    """Characters of the longest."""
    rows: int
    """The number of these rows."""
    pretrained: dict[str, Spread]
    """The metric over seeds with pre-trained weights, by recipe."""
    baseline: float | None = None
    """The metric of the best baseline that learns; None: its predictions are not known."""


class DifferingRow(Config):
    """A test row on which some recipes are right, or nearer to it, and others are not, whatever the seed."""

    row: int
    """The number of the row in the test, from 1 on."""
    text: str
    """The beginning of the row's texts."""
    label: Any
    """The right answer, as in predictions.jsonl."""
    word_by_word: bool = False
    """Whether answers are lists with an entry for each word."""
    predictions: dict[str, list[Any]]
    """The prediction of each fine-tuned model with pre-trained weights, by recipe, in the order of the seeds."""


Lines = Sequence[Mapping[str, Any]]
"""(n,) the lines of a predictions.jsonl."""


def thirds(characters: Sequence[int]) -> list[NDArray[np.intp]]:
    """The rows of each third by length, the short ones first; rows of one length stay together.

    Fewer than three parts where lengths do not differ, none where there are few rows.

    Args:
        characters: (n,) the length of each row.
    """
    lengths = np.asarray(characters)
    if len(lengths) < FEWEST_ROWS:
        return []
    ranked = np.sort(lengths)
    ends = [int(ranked[len(ranked) * part // 3 - 1]) for part in (1, 2, 3)]
    parts = np.searchsorted(ends, lengths)
    found = [np.flatnonzero(parts == part) for part in range(3)]
    return [rows for rows in found if len(rows)]


def by_length(
    characters: Sequence[int],
    runs: Mapping[str, Mapping[int, Sequence[Lines]]],
    baseline: Lines | None,
    config: TaskConfig,
    metric: str,
    clusters: NDArray[np.intp] | None,
    reach: float | None,
) -> list[LengthScores]:
    """The scores on each third of the test rows by length; empty where what rows contribute is not known.

    Args:
        characters: (n,) the length of each row; empty: not known.
        runs: the predictions with pre-trained weights, by recipe and seed, of each nested fine-tuning.
        baseline: the predictions of the best baseline that learns; None: not known.
        config: the task.
        metric: the task's metric.
        clusters: (n,) the number of the cluster of each row; None: all are independent.
        reach: the distance of the metric's highest from its lowest value; None: it has no such bounds.
    """

    def values(lines: Lines, rows: NDArray[np.intp]) -> Vector | None:
        return config.contributions([lines[row] for row in rows], metric)

    made = []
    for rows in thirds(characters):
        together = None if clusters is None else np.unique(clusters[rows], return_inverse=True)[1]
        groups = {}
        for label, seeds in runs.items():
            known = {seed: [values(lines, rows) for lines in nested] for seed, nested in seeds.items()}
            scored = {
                seed: [(float(each.mean()), each) for each in nested if each is not None]
                for seed, nested in known.items()
            }
            if not all(scored.values()):
                return []
            groups[label] = Group.of(scored, together, reach)
        simple = None if baseline is None else values(baseline, rows)
        lengths = np.asarray(characters)[rows]
        made.append(
            LengthScores(
                shortest=int(lengths.min()),
                longest=int(lengths.max()),
                rows=len(rows),
                pretrained={label: describe(group) for label, group in groups.items()},
                baseline=None if simple is None else float(simple.mean()),
            )
        )
    return made if len(made) > 1 else []


def steadily_differing(values: Mapping[str, Sequence[Vector]]) -> list[int]:
    """The rows on which the worst seed of some recipe is farthest above the best seed of another, at most `MOST_ROWS`.

    Of rows with equal distances, those on which the recipes are most divided. Rows on which the same recipes are better
    than the others take no more than `OF_A_KIND` places before rows of other kinds.

    Args:
        values: for each recipe (n,) how near the answer to each row is to the right one in each seed.
    """
    if len(values) < 2 or not all(len(each) for each in values.values()):
        return []
    lowest = np.stack([np.min(each, axis=0) for each in values.values()])
    highest = np.stack([np.max(each, axis=0) for each in values.values()])
    means = np.stack([np.mean(each, axis=0) for each in values.values()])
    gaps = lowest.max(0) - highest.min(0)
    rows = np.flatnonzero(gaps > 1e-9)
    order = rows[np.lexsort((rows, -means.var(0)[rows].round(9), -gaps[rows].round(9)))]
    better = means > (means.max(0) + means.min(0)) / 2
    kinds: Counter[bytes] = Counter()
    first: list[int] = []
    rest: list[int] = []
    for row in order.tolist():
        kind = better[:, row].tobytes()
        kinds[kind] += 1
        (first if kinds[kind] <= OF_A_KIND else rest).append(row)
    return [*first, *rest][:MOST_ROWS]


def differing_rows(
    chosen: Sequence[int], runs: Mapping[str, Mapping[int, Sequence[Lines]]], texts: Sequence[TestRow]
) -> list[DifferingRow]:
    """Some test rows with the predictions of all recipes.

    Args:
        chosen: the indices of the rows.
        runs: the predictions, see `by_length`.
        texts: the test rows.
    """
    return [
        DifferingRow(
            row=row + 1,
            text=texts[row].text,
            label=right,
            word_by_word=isinstance(right, list) and texts[row].words == len(right),
            predictions={
                label: [lines[row].get("prediction") for nested in seeds.values() for lines in nested]
                for label, seeds in runs.items()
            },
        )
        for row in chosen
        for right in [_right(runs, row)]
    ]


def _right(runs: Mapping[str, Mapping[int, Sequence[Lines]]], row: int) -> Any:
    """The right answer to a row, which is the same in all files."""
    return next(lines[row].get("label") for seeds in runs.values() for nested in seeds.values() for lines in nested)
