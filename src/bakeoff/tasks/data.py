"""A task's data: labelled texts to learn from (train), to choose by (dev) and to report (test)."""

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tasks.tables import Table, read_table

FEWEST_SCORES = 5
"""So many labels or more that are all numbers are remarked on."""


class TaskConfig(Config):
    """Which files hold a task, and what its columns mean."""

    kind: Literal["classification"] = "classification"
    """What is learned."""
    name: str = "classification"
    """The task's name in results."""
    train: Path
    """File of labelled rows to learn from: .csv, .tsv or .jsonl, each plain, .gz or .zst."""
    dev: Path | None = None
    """File on which epochs and learning rates are chosen; absent: a part of train is held out."""
    test: Path | None = None
    """File that every reported number comes from; absent: a part of train is held out."""
    text_column: str
    """The column with the text."""
    pair_column: str | None = None
    """The column with the second text, for tasks on pairs."""
    label_column: str
    """The column with the class."""
    metric: Literal["accuracy", "macro_f1", "matthews"] = "accuracy"
    """What epochs and learning rates are chosen by."""
    train_rows: int | None = Field(default=None, gt=0)
    """Learn from the first so many rows of train only; what is held out as dev and test is cut off before."""
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    """The share of train that is held out as dev where there is no dev file."""
    test_share: float = Field(default=0.2, gt=0, lt=1)
    """The share of train that is held out as test where there is no test file."""
    split_seed: int = Field(default=0, ge=0)
    """Seed of what is held out. It is the task's own, so that all models and seeds are tested on the same rows."""
    errors: Literal["strict", "replace"] = "strict"
    """Invalid UTF-8 is an error, or is replaced by U+FFFD."""


class Labelled(NamedTuple):
    """One part of a task's data; N rows."""

    texts: list[str]
    """(N,) the texts."""
    pairs: list[str] | None
    """(N,) the second texts, for tasks on pairs."""
    labels: list[int]
    """(N,) the class of each, as its place in the list of classes."""


class TaskData(NamedTuple):
    """The labelled rows of a task in three parts, and the names of its classes."""

    train: Labelled
    """What is learned from."""
    dev: Labelled
    """What every choice looks at."""
    test: Labelled
    """What the numbers come from."""
    classes: list[str]
    """The names of the classes, sorted."""
    notes: list[str]
    """What a reader of the results must know: parts that were held out of train, rows that stand in two parts."""

    @property
    def majority(self) -> float:
        """Accuracy on test of always naming the most frequent class of train; on a tie the first."""
        counts = Counter(self.train.labels)
        most = min(counts, key=lambda label: (-counts[label], label))
        return self.test.labels.count(most) / len(self.test.labels)


def load_task(task: TaskConfig) -> TaskData:
    """Read a task's files; hold out dev and test where they have no file of their own.

    Raises:
        UserError: a mistake in a file (see `read_table`); a label of dev or test that train does not have; train has
            one class only, or too few rows to hold any out.
    """
    train = _read(task, task.train)
    given = {name: path for name in ("test", "dev") if (path := getattr(task, name)) is not None}
    parts = {name: (path, _read(task, path)) for name, path in given.items()}
    notes = []
    rows = len(train.texts)
    for name, share in (("test", task.test_share), ("dev", task.dev_share)):
        if name not in parts:
            # The shares are of the whole file, whichever parts are cut off it.
            train, held_out = hold_out(train, share * rows / len(train.texts), task.split_seed, name)
            if not held_out.texts:
                raise UserError(f"{task.train}: {rows} rows are too few to hold some out as {name}; give --{name}")
            parts[name] = (task.train, held_out)
            count = len(held_out.texts)
            notes.append(f"no {name} file: {count} of the {rows} rows of {task.train.name} were held out as {name}")
    if task.train_rows is not None:
        if task.train_rows > len(train.texts):
            notes.append(f"train_rows is {task.train_rows}, but there are only {len(train.texts)} rows to learn from")
        train = train.take(range(min(task.train_rows, len(train.texts))))
    assert train.labels is not None
    classes = sorted(set(train.labels))
    origin = f"{task.train}" if task.train_rows is None else f"the first {task.train_rows} rows of {task.train}"
    if len(classes) < 2:
        raise UserError(f"{origin}: the only label is '{classes[0]}'; at least two classes are needed")
    if _on_a_scale(classes):
        numbers = sorted(map(float, classes))
        notes.append(
            f"the {len(classes)} labels are numbers from {numbers[0]:g} to {numbers[-1]:g}, and each is a class of its "
            "own: a guess beside the right one counts like any other; if they are a scale, group them into few classes"
        )
    labelled = {name: _number(table, classes, path, origin) for name, (path, table) in parts.items()}
    learned = _number(train, classes, task.train, origin)
    for name, part in labelled.items():
        if both := _common(part, learned):
            notes.append(f"{both} of the {len(part.texts)} rows of {name} have a text that train has, too")
    for name, part in {"train": learned, **labelled}.items():
        if empty := sum(not text.strip() for text in [*part.texts, *(part.pairs or [])]):
            notes.append(f"{empty} texts of {name} are empty")
    return TaskData(learned, labelled["dev"], labelled["test"], classes, notes)


def _read(task: TaskConfig, path: Path) -> Table:
    return read_table(path, task.text_column, task.pair_column, task.label_column, task.errors)


def hold_out(table: Table, share: float, seed: int, stream: str) -> tuple[Table, Table]:
    """What stays of a table, and a seeded share of it in which all classes have their share; both in file order.

    Rows with the same text stay together, since a text that was learned is no test. Every class keeps some rows.

    Args:
        table: labelled rows.
        share: how much to hold out.
        seed: which rows.
        stream: the name of the part, so that parts of one seed differ.
    """
    assert table.labels is not None
    same: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(table.texts, table.pairs or table.texts, strict=True)):
        same[key].append(row)
    by_label: dict[str, list[list[int]]] = defaultdict(list)
    for rows in same.values():
        by_label[table.labels[rows[0]]].append(rows)
    labels = sorted(by_label)
    exact = np.array([share * len(by_label[label]) for label in labels])
    counts = np.floor(exact)
    # Largest remainders: rare classes share what rounding down has left, and the whole has the size asked for.
    counts[np.argsort(counts - exact, kind="stable")[: round(exact.sum() - counts.sum())]] += 1
    held_out: set[int] = set()
    for index, (label, count) in enumerate(zip(labels, counts, strict=True)):
        groups = by_label[label]
        order = permute(np.arange(len(groups)), len(groups), key_of(seed, index, stream), 0)
        for place in order[: min(int(count), len(groups) - 1)]:
            held_out.update(groups[place])
    stay = [row for row in range(len(table.texts)) if row not in held_out]
    return table.take(stay), table.take(sorted(held_out))


def _number(table: Table, classes: list[str], path: Path, origin: str) -> Labelled:
    """Labels as places in the list of classes."""
    assert table.labels is not None
    places = {name: place for place, name in enumerate(classes)}
    for label, line in zip(table.labels, table.lines, strict=True):
        if label not in places:
            raise UserError(f"{path}:{line}: the label '{label}' does not occur in {origin}{_shown(classes)}")
    return Labelled(table.texts, table.pairs, [places[label] for label in table.labels])


def _on_a_scale(classes: list[str]) -> bool:
    """Whether the names of classes look like values of a scale: more numbers than categories are numbered, or parts."""
    try:
        numbers = [float(name) for name in classes]
    except ValueError:
        return False
    return all(map(math.isfinite, numbers)) and (
        len(numbers) >= FEWEST_SCORES or any(not number.is_integer() for number in numbers)
    )


def _shown(classes: list[str]) -> str:
    """The classes, as far as they fit into a line."""
    more = ", ..." if len(classes) > 12 else ""
    return f", which has {', '.join(classes[:12])}{more}"


def _common(part: Labelled, train: Labelled) -> int:
    """How many rows of a part have their text, or both of their texts, in train."""
    known = set(zip(train.texts, train.pairs or train.texts, strict=True))
    return sum(key in known for key in zip(part.texts, part.pairs or part.texts, strict=True))
