"""A task's data: labelled examples to learn from (train), to choose by (dev) and to report (test)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import permute
from bakeoff.tasks.clusters import Key, cluster_numbers, keys_together, named_clusters
from bakeoff.tasks.examples import Example, LeftOut
from bakeoff.tasks.label_counts import in_one_split, most_of_train, some_of
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig


class TaskData(NamedTuple):
    """The labelled examples of a task in three splits, and the task with its known labels."""

    task: Task
    """The task, which knows its labels from train."""
    train: list[Any]
    """The examples to learn from."""
    dev: list[Any]
    """The examples by which every choice is made."""
    test: list[Any]
    """The examples from which the reported numbers come."""
    notes: list[str]
    """Notes to readers of the results: splits that were held out of train, rows that stand in two splits."""
    clusters: Sequence[int] = ()
    """The number of the cluster of each test example, see `cluster_numbers`; empty: all are independent."""


class Splits(NamedTuple):
    """The examples of the three splits, before anything is known of their labels."""

    train: list[Any]
    """The examples to learn from."""
    whole: list[Any]
    """All examples of train, of which `train` may be a part: those by which labels are known."""
    others: dict[str, tuple[Path, list[Any]]]
    """The file and the examples of dev and of test, by the name of the split."""
    origin: str
    """The name of the examples to learn from in errors."""
    notes: list[str]
    """Notes on rows that were held out or left out."""

    @property
    def all(self) -> dict[str, list[Any]]:
        """The examples of each split by its name."""
        return {"train": self.train, "dev": self.others["dev"][1], "test": self.others["test"][1]}


def load_task(config: TaskConfig) -> TaskData:
    """Read a task's files; hold out dev and test where they have no file.

    Raises:
        UserError: a mistake in a file; a class of dev or test that train does not have, or labels none of which train
            has; nothing to learn from train, or too few rows to hold any out.
    """
    read = {"train": read_examples(config, config.train)}
    config = config.settled(read["train"][0])
    files = {"test": config.test, "dev": config.dev}
    read |= {name: read_examples(config, path) for name, path in files.items() if path is not None}
    splits = split_examples(config, read)
    task = config.learn(splits.whole, splits.origin)
    notes = [*splits.notes, *task.notes]
    if config.dev is not None and config.dev == config.test:
        notes.append("dev and test are the same file: epochs and rates are chosen by the rows that are reported")
    for path, examples in splits.others.values():
        require_known(task, examples, path, splits.origin)
    notes += _in_two(splits.all, same=config.dev is not None and config.dev == config.test)
    counts = {
        name: Counter(label for each in examples for label, _ in each.labels) for name, examples in splits.all.items()
    }
    notes += [*most_of_train(counts, config.kind), *in_one_split(counts)]
    for name, examples in splits.all.items():
        if empty := sum(config.blank_texts(each) for each in examples):
            notes.append(f"{counted(empty, f'blank {config.blank_unit}')} in {name}")
    clusters = cluster_numbers(config, *splits.others["test"])
    return TaskData(task, splits.train, splits.all["dev"], splits.all["test"], notes, clusters)


def require_known(task: Task, examples: Sequence[Example], path: Path, origin: str) -> Counter[str]:
    """Refuse examples with labels that are a slip, or with none that can be predicted; those of `Task.unseen`.

    Args:
        task: the task with its known labels.
        examples: the examples.
        path: their file.
        origin: the name of the examples to learn from.

    Raises:
        UserError: there are such labels.
    """
    task.check(examples, path, origin)
    unseen = task.unseen(examples)
    if unseen and unseen.total() == sum(len(each.labels) for each in examples):
        raise UserError(
            f"{path}: none of its labels ({some_of(sorted(unseen))}) occurs in {origin}, which has "
            f"{some_of(sorted(task.classes))}; mend them, or name another column"
        )
    return unseen


def _in_two(splits: Mapping[str, Sequence[Example]], same: bool) -> Iterator[str]:
    """Remarks on rows that stand in two splits; dev and test are not compared where they are the `same` file."""
    known = {name: {each.alike for each in examples} for name, examples in splits.items()}
    for one, other in (("test", "train"), ("dev", "train"), *([] if same else [("test", "dev")])):
        if both := sum(each.alike in known[other] for each in splits[one]):
            yield f"{other} has the texts of {both:,} of the {counted(len(splits[one]), 'row')} of {one}, too"


def read_examples(config: TaskConfig, path: Path) -> tuple[list[Any], list[str]]:
    """The labelled examples of a file, and notes on the rows that were left out.

    Raises:
        UserError: a mistake in the file, or all of its rows are left out.
    """
    examples: list[Any] = []
    reasons: Counter[str] = Counter()
    for each in config.read(path):
        if isinstance(each, LeftOut):
            reasons[each.reason] += 1
        else:
            examples.append(each)
    notes = [f"{counted(count, 'row')} of {path.name} left out: the row {reason}" for reason, count in reasons.items()]
    if not examples:
        raise UserError(f"{path}: no row is left; {'; '.join(notes)}")
    return examples, notes


def split_examples(config: TaskConfig, read: Mapping[str, tuple[list[Any], list[str]]]) -> Splits:
    """The three splits, dev and test held out of train where they have no file.

    Args:
        config: the task.
        read: the result of `read_examples` for each split with a file, by the name of the split; train is one.

    Raises:
        UserError: too few rows to hold any out.
    """
    train, _ = read["train"]
    notes = [*([config.remark] if config.remark else []), *(note for _, remarks in read.values() for note in remarks)]
    files = {"test": config.test, "dev": config.dev}
    others = {name: (path, read[name][0]) for name, path in files.items() if path is not None}
    rows, named = len(train), {} if len(others) == len(files) else named_clusters(config, config.train)
    for name, share in (("test", config.test_share), ("dev", config.dev_share)):
        if name not in others:
            # The shares are of the whole file, whichever splits are cut off it.
            keys = keys_together(train, named)
            train, held_out = hold_out(train, share * rows / len(train), config.split_seed, name, keys)
            if not held_out:
                left = "" if len(train) == rows else f", {len(train):,} of them left"
                what = f"{counted(rows, 'row')}{left}{_parted(train, keys)}"
                raise UserError(
                    f"{config.train}: {what}: too few to hold some out as {name}; give more, or a file of {name}"
                )
            others[name] = (config.train, held_out)
            count = len(held_out)
            notes.append(f"no {name} file: {count:,} of the {rows:,} rows of {config.train.name} held out as {name}")
    notes += _without_use(config)
    whole = train
    if config.train_rows is not None:
        if config.train_rows > len(train):
            notes.append(
                f"train_rows is {config.train_rows:,}, more than there are: all {counted(len(train), 'row')} are "
                "learned from"
            )
        train = chosen_rows(train, config.train_rows, config.split_seed)
    return Splits(train, whole, others, str(config.train), notes)


def chosen_rows(examples: Sequence[Example], count: int, seed: int) -> list[Any]:
    """A number of the examples, in file order: of every stratum its share, and first of all some with every label.

    The examples of a smaller number are among those of a larger one.

    Args:
        examples: labelled examples.
        count: the number of examples wanted.
        seed: the seed of their choice.
    """
    spread: list[tuple[float, int]] = []  # each example's place in its stratum, from 0 to 1, and its index
    for index, rows in enumerate(_by_stratum(range(len(examples)), examples)):
        order = permute(np.arange(len(rows)), len(rows), key_of(seed, index, "train_rows"), 0)
        spread += [((place + 0.5) / len(rows), rows[which]) for place, which in enumerate(order)]
    known: set[str] = set()
    with_a_new_label: list[int] = []
    others: list[int] = []
    for _, row in sorted(spread):
        labels = {label for label, _ in examples[row].labels}
        (others if labels <= known else with_a_new_label).append(row)
        known |= labels
    return [examples[row] for row in sorted([*with_a_new_label, *others][:count])]


def _by_stratum(rows: Iterable[int], examples: Sequence[Example]) -> list[list[int]]:
    """The rows of each stratum, in the order of the strata's names."""
    strata: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        strata[examples[row].stratum].append(row)
    return [strata[name] for name in sorted(strata)]


def _without_use(config: TaskConfig) -> Iterator[str]:
    """Notes on settings of held-out splits that have no use, because the splits have files."""
    default = type(config).model_fields
    names = [name for name in ("dev", "test") if getattr(config, name) is not None]
    for name in names:
        share = getattr(config, f"{name}_share")
        if share != default[f"{name}_share"].default:
            yield f"{name}_share {share:g} has no use: {name} has a file of its own, {getattr(config, name).name}"
    if len(names) == 2 and config.train_rows is None and config.split_seed != default["split_seed"].default:
        yield f"split_seed {config.split_seed} has no use: dev and test have files of their own"


def _parted(examples: Sequence[Example], keys: Sequence[Key]) -> str:
    """Why rows are fewer than they look where some are held out; empty where they are not."""
    groups = len(set(keys))
    if groups < len(examples):
        return f" in {counted(groups, 'group')} with the same texts or of one cluster, which stay together"
    labels = Counter(label for each in examples for label, _ in each.labels)
    return ", no label of which comes twice" if len(labels) > 1 and max(labels.values()) == 1 else ""


def hold_out(
    examples: Sequence[Example], share: float, seed: int, stream: str, keys: Sequence[tuple[str, ...]] = ()
) -> tuple[list[Any], list[Any]]:
    """The examples that stay, and a seeded share of every stratum that is held out; both in file order.

    Rows that belong together stay together, since a text that was learned is no test. Every stratum keeps some rows.

    Args:
        examples: labelled examples.
        share: the share to hold out.
        seed: the seed of the choice of rows.
        stream: the name of the split, so that splits of one seed differ.
        keys: what the rows that belong together have in common, for each example; left out: `Example.together`.
    """
    keys = keys or [each.together for each in examples]
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        same[key].append(row)
    strata = _by_stratum((rows[0] for rows in same.values()), examples)
    exact = np.array([share * len(stratum) for stratum in strata])
    counts = np.floor(exact)
    # Largest remainders: rare classes share what rounding down has left, and the whole has the size asked for.
    counts[np.argsort(counts - exact, kind="stable")[: round(exact.sum() - counts.sum())]] += 1
    held_out: set[int] = set()
    for index, (groups, count) in enumerate(zip(strata, counts, strict=True)):
        order = permute(np.arange(len(groups)), len(groups), key_of(seed, index, stream), 0)
        for group in order[: min(int(count), len(groups) - 1)]:
            held_out.update(same[keys[groups[group]]])
    stay = [example for row, example in enumerate(examples) if row not in held_out]
    return stay, [examples[row] for row in sorted(held_out)]
