"""A task's data: labelled examples to learn from (train), to choose by (dev) and to report (test)."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tasks.task import Example, Task, TaskConfig


class TaskData(NamedTuple):
    """The labelled examples of a task in three parts, and the task with what is known of its labels."""

    task: Task
    """The task."""
    train: list[Any]
    """What is learned from."""
    dev: list[Any]
    """What every choice looks at."""
    test: list[Any]
    """What the numbers come from."""
    notes: list[str]
    """What a reader of the results must know: parts that were held out of train, rows that stand in two parts."""


def load_task(config: TaskConfig) -> TaskData:
    """Read a task's files; hold out dev and test where they have no file of their own.

    Raises:
        UserError: a mistake in a file; a label of dev or test that train does not have; nothing to learn from train, or
            too few rows to hold any out.
    """
    train: list[Any] = list(config.read(config.train))
    given = {name: path for name in ("test", "dev") if (path := getattr(config, name)) is not None}
    parts = {name: (path, list(config.read(path))) for name, path in given.items()}
    notes = []
    rows = len(train)
    for name, share in (("test", config.test_share), ("dev", config.dev_share)):
        if name not in parts:
            # The shares are of the whole file, whichever parts are cut off it.
            train, held_out = hold_out(train, share * rows / len(train), config.split_seed, name)
            if not held_out:
                raise UserError(f"{config.train}: {rows} rows are too few to hold some out as {name}; give --{name}")
            parts[name] = (config.train, held_out)
            count = len(held_out)
            notes.append(f"no {name} file: {count} of the {rows} rows of {config.train.name} were held out as {name}")
    if config.train_rows is not None:
        if config.train_rows > len(train):
            notes.append(f"train_rows is {config.train_rows}, but there are only {len(train)} rows to learn from")
        train = train[: config.train_rows]
    origin = f"{config.train}" if config.train_rows is None else f"the first {config.train_rows} rows of {config.train}"
    task = config.learn(train, origin)
    notes += task.notes
    for path, examples in parts.values():
        task.check(examples, path, origin)
    known = {each.texts for each in train}
    for name, (_, examples) in parts.items():
        if both := sum(each.texts in known for each in examples):
            notes.append(f"{both} of the {len(examples)} rows of {name} have a text that train has, too")
    for name, examples in {"train": train, **{name: part for name, (_, part) in parts.items()}}.items():
        if empty := sum(config.blank_texts(each) for each in examples):
            notes.append(f"{empty} texts of {name} are empty")
    return TaskData(task, train, parts["dev"][1], parts["test"][1], notes)


def hold_out(examples: Sequence[Example], share: float, seed: int, stream: str) -> tuple[list[Any], list[Any]]:
    """What stays of examples, and a seeded share of them in which all strata have their share; both in file order.

    Rows that belong together (`Example.together`) stay so, since a text that was learned is no test. Every
    stratum keeps some rows.

    Args:
        examples: labelled examples.
        share: how much to hold out.
        seed: which rows.
        stream: the name of the part, so that parts of one seed differ.
    """
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        same[example.together].append(row)
    by_stratum: dict[str, list[list[int]]] = defaultdict(list)
    for rows in same.values():
        by_stratum[examples[rows[0]].stratum].append(rows)
    strata = sorted(by_stratum)
    exact = np.array([share * len(by_stratum[stratum]) for stratum in strata])
    counts = np.floor(exact)
    # Largest remainders: rare classes share what rounding down has left, and the whole has the size asked for.
    counts[np.argsort(counts - exact, kind="stable")[: round(exact.sum() - counts.sum())]] += 1
    held_out: set[int] = set()
    for index, (stratum, count) in enumerate(zip(strata, counts, strict=True)):
        groups = by_stratum[stratum]
        order = permute(np.arange(len(groups)), len(groups), key_of(seed, index, stream), 0)
        for place in order[: min(int(count), len(groups) - 1)]:
            held_out.update(groups[place])
    stay = [example for row, example in enumerate(examples) if row not in held_out]
    return stay, [examples[row] for row in sorted(held_out)]
