"""`check --task`: the content of labelled data and its probable mistakes, before anything is trained."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.checkpoint import run_folder
from bakeoff.tasks.checks.findings import LabelFinding, LengthFinding, SplitFinding, TaskFindings
from bakeoff.tasks.checks.hidden_text import hidden_in
from bakeoff.tasks.checks.likely_mistakes import warnings_of
from bakeoff.tasks.data import Splits, read_examples, require_known, split_examples
from bakeoff.tasks.examples import Example
from bakeoff.tasks.fitting.starting_point import open_source
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.text.segmentation import words_and_signs
from bakeoff.tokenizer.hidden import HiddenText

_SHOWN = 60  # characters of an example
_UNCUT = 1 << 30
_QUANTILES = (0, 50, 90, 99, 100)


class Measure(NamedTuple):
    """The format in which examples are measured in tokens."""

    format: InputFormat
    """The format of the rows of a model."""
    limit: int | None
    """The length to which rows are cut; None: unknown."""
    recipe: Recipe
    """The recipe of the model."""


def check_task(
    task: TaskConfig,
    source: str | None = None,
    *,
    tokenizer: str | Path | None = None,
    length: int | None = None,
) -> TaskFindings:
    """Check all splits of a task's data. Mistakes are collected; none of them ends the check.

    Args:
        task: the kind of task, the files and their columns.
        source: the run or recipe to be trained, whose rows are measured; None: rows of the tokenizer alone, or words.
        tokenizer: a tokenizer.json or a directory with one, for a recipe or alone.
        length: maximal length of a row in tokens; longer rows are cut. None: the length of the run's rows, or of the
            recipe's.

    Raises:
        UserError: a mistake in the other arguments.
    """
    measured = None if source is None and tokenizer is None else measure_of(source, tokenizer, length)
    findings = _examine(task, measured)
    if source is None or measured is None:
        return findings
    try:
        task.require_model(measured.recipe)
    except UserError as error:
        return findings.model_copy(update={"problems": [*findings.problems, str(error)]})
    return findings


def _examine(config: TaskConfig, measure: Measure | None) -> TaskFindings:
    read, problems = _read(config)
    splits: dict[str, list[Any]] = {name: pair[0] for name, pair in read.items()}
    notes = [note for _, remarks in read.values() for note in remarks]
    cut, task = None, None
    if not problems:
        try:
            cut = split_examples(config, read)
            splits, notes = cut.all, list(cut.notes)
        except UserError as error:
            problems.append(str(error))
    origin = str(config.train)
    if "train" in splits:
        try:
            task = config.learn(splits["train"] if cut is None else cut.whole, origin)
            notes += task.notes
        except UserError as error:
            problems.append(str(error))
    files = {"train": config.train, "dev": config.dev or config.train, "test": config.test or config.train}
    unknown = {} if task is None else _unknown(task, splits, files, origin)
    problems += [text for _, text in unknown.values()]
    split_findings = []
    for name in ("train", "dev", "test"):
        if name in splits:
            refused = unknown[name][0] if name in unknown else frozenset()
            answerable = [each for index, each in enumerate(splits[name]) if index not in refused]
            lengths, remarks = _lengths(answerable, task, measure)
            notes += [f"{name}: {remark}" for remark in remarks]
            hidden = None if measure is None else hidden_in(measure.format.tokenizer, splits[name])
            split_findings.append(_split(config, name, files[name], splits[name], lengths, hidden))
    overlaps = _overlaps(splits)
    findings = TaskFindings(
        task=config.title,
        kind=config.kind,
        metric=None if task is None else task.metric,
        simplest=_simplest(task, cut) if not problems else {},
        splits=split_findings,
        overlaps=overlaps,
        notes=list(dict.fromkeys(notes)),
        warnings=[],
        problems=problems,
    )
    return findings.model_copy(update={"warnings": warnings_of(findings)})


def _read(config: TaskConfig) -> tuple[dict[str, tuple[list[Any], list[str]]], list[str]]:
    """The examples of each file that can be read, and an error for each of the others."""
    read, problems = {}, []
    for name in ("train", "dev", "test"):
        path = getattr(config, name)
        if path is not None:
            try:
                read[name] = read_examples(config, path)
            except UserError as error:
                problems.append(str(error))
                continue
            if name == "train":
                config = config.settled(read[name][0])
    return read, problems


def _unknown(
    task: Task, splits: Mapping[str, Sequence[Any]], files: Mapping[str, Path], origin: str
) -> dict[str, tuple[frozenset[int], str]]:
    """The examples whose labels the task cannot have, by index, and the error of the first, for each split."""
    unknown = {}
    for name, examples in splits.items():
        refused: list[tuple[int, str]] = []
        for index, each in enumerate(examples if name != "train" else ()):
            try:
                task.check([each], files[name], origin)
            except UserError as error:
                refused.append((index, str(error)))
        if refused:
            more = f" (and {len(refused) - 1} more of {name})" if len(refused) > 1 else ""
            unknown[name] = frozenset(index for index, _ in refused), f"{refused[0][1]}{more}"
            continue
        try:
            require_known(task, examples, files[name], origin)
        except UserError as error:  # of the file as a whole, whose rows can be measured all the same
            unknown[name] = frozenset(), str(error)
    return unknown


def _split(
    config: TaskConfig,
    name: str,
    file: Path,
    examples: Sequence[Example],
    lengths: LengthFinding,
    hidden: HiddenText | None,
) -> SplitFinding:
    seen: dict[tuple[str, ...], list[tuple[Any, int]]] = {}  # what is wanted of texts, and the line
    repeated, contradictions = 0, list[tuple[int, int]]()
    for each in examples:
        wanted, before = _wanted(each), seen.setdefault(each.alike, [])
        if any(wanted == other for other, _ in before):
            repeated += 1
        elif before:
            contradictions.append((before[0][1], each.line))
        before.append((wanted, each.line))
    return SplitFinding(
        split=name,
        file=str(file),
        examples=len(examples),
        blank=sum(config.blank_texts(each) for each in examples),
        blank_unit=config.blank_unit,
        damaged=sum(any("\ufffd" in text for text in each.texts) for each in examples),
        repeated=repeated,
        contradictory=len(contradictions),
        first_contradiction=contradictions[0] if contradictions else None,
        labels=_labels(examples),
        lengths=lengths,
        hidden=hidden,
    )


def _wanted(example: Example) -> tuple[Any, ...]:
    """The label of an example: all of its fields that are compared, beside line and texts."""
    names = (each.name for each in fields(example) if each.compare and each.name not in ("line", "texts"))
    return tuple(getattr(example, name) for name in names)


def _labels(examples: Sequence[Example]) -> list[LabelFinding]:
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, int]] = {}
    for each in examples:
        for label, text in each.labels:
            counts[label] += 1
            if label not in first:
                first[label] = (text, each.line)
    total = counts.total()
    return [
        LabelFinding(
            label=label,
            count=count,
            share=round(count / total, 6),
            example=_shortened(first[label][0]),
            line=first[label][1],
        )
        for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _lengths(
    examples: Sequence[Example], task: Task | None, measure: Measure | None
) -> tuple[LengthFinding, Sequence[str]]:
    """The lengths of rows in tokens before truncation, or of examples in words, and remarks on the examples."""
    if measure is None or task is None:
        words = [sum(len(words_and_signs(text)) for text in each.texts) for each in examples]
        remarks = [] if task is None else list(task.remarks(examples))
        return _length("words", np.array(words, np.int64), None), remarks
    whole = copy(measure.format)
    whole.length = _UNCUT
    items = task.encode(examples, whole)
    return _length("tokens", items.encoded.lengths, measure.limit), items.notes


def _length(unit: Any, lengths: NDArray[np.int64], limit: int | None) -> LengthFinding:
    if not len(lengths):
        return LengthFinding(unit=unit, mean=0, quantiles={})
    quantiles = np.percentile(lengths, _QUANTILES, method="higher")
    return LengthFinding(
        unit=unit,
        mean=round(float(lengths.mean()), 1),
        quantiles={f"{share} %": int(length) for share, length in zip(_QUANTILES, quantiles, strict=True)},
        limit=limit,
        longer=None if limit is None else round(float((lengths > limit).mean()), 6),
    )


def _overlaps(splits: Mapping[str, Sequence[Example]]) -> dict[str, int]:
    texts = {name: {each.alike for each in examples} for name, examples in splits.items()}
    pairs = combinations([name for name in ("train", "dev", "test") if name in splits], 2)
    counts = {f"{two} in {one}": sum(each.alike in texts[one] for each in splits[two]) for one, two in pairs}
    return {name: count for name, count in counts.items() if count}


def _simplest(task: Task | None, cut: Splits | None) -> dict[str, float]:
    if task is None or cut is None:
        return {}
    return task.simplest(cut.train, cut.all["test"])


_ROWS_OF = "bert-tiny"
"""The recipe whose rows are measured where only a tokenizer is given: [CLS] A [SEP] B [SEP]."""


def measure_of(source: str | None, tokenizer: str | Path | None, length: int | None) -> Measure:
    """The format in which rows are measured.

    Args:
        source: a pre-trained run, or a recipe; None: only the tokenizer is known.
        tokenizer: a tokenizer.json or a directory with one, for a recipe or alone.
        length: the length to which rows will be cut; None: the recipe's, where there is one.

    Raises:
        UserError: no such run or recipe, or no tokenizer.
    """
    named = source or _ROWS_OF
    if source is not None and (run_folder(Path(source)) / "recipe.yaml").is_file():
        begun = open_source(source, tokenizer)
    elif source is not None and Path(source).is_dir():
        raise UserError(f"{source}: not a run; its rows are measured by a run, a recipe or --corpus DIR")
    else:
        begun = open_source(load_recipe(named), tokenizer)
    recipe = begun.recipe
    limit = recipe.input.length if source is not None else None
    return Measure(InputFormat(begun.tokenizer, recipe, recipe.input.length), length or limit, recipe)
