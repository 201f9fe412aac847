"""Rows of labelled data that are published in another form than a table: folders, trees, questions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bakeoff.errors import UserError
from bakeoff.json_files import RepeatedKey, json_value
from bakeoff.randomness.order import permute
from bakeoff.reading.fields import existing
from bakeoff.reading.files import LineReader, require_file

Layout = Literal["table", "class_folders", "trees", "coarse_and_fine", "race"]
"""The form of a file: table, rows with columns; for the others see `LAYOUTS`."""

_LEAF = re.compile(r"\((\d+) ([^()\s]+)\)")
_TREE = re.compile(r"\s*\((?P<label>\d+)\s.*\)\s*")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}


def class_folders(path: Path, errors: str, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """A folder with a folder of .txt files for each class (IMDb): `text` and `label`, the name of the folder.

    The rows are shuffled, always in the same way, so that the first rows are of all classes.
    """
    if not path.is_dir():
        raise UserError(f"{path}: no such folder; class_folders has a folder with one for each class")
    files = [
        (file, folder.name)
        for folder in sorted(path.iterdir())
        if folder.is_dir() and folder.name not in _UNLABELLED
        for file in sorted(folder.glob("*.txt"))
    ]
    if not files:
        raise UserError(f"{path}: no folder here has .txt files; class_folders has a folder of them for each class")
    for number, index in enumerate(permute(np.arange(len(files)), len(files), 0, 0), 1):
        file, label = files[index]
        text = "".join(line.text for line in LineReader(file, errors, encoding=encoding).whole())
        yield number, {"text": text, "label": label}


_UNLABELLED = ("unsup",)
"""Names of folders beside the classes whose texts have no class (IMDb)."""


def trees(path: Path, errors: str, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Trees in brackets, one a line (Stanford Sentiment Treebank): `text`, all words, and `label`, of the root."""
    for line in _lines(path, errors, encoding):
        if not line.text.strip():
            continue
        root = _TREE.fullmatch(line.text)
        words = [_BRACKETS.get(word, word.replace("\\/", "/")) for _, word in _LEAF.findall(line.text)]
        if root is None or not words or line.text.count("(") != line.text.count(")"):
            raise UserError(f"{path}:{line.number}: no tree, as (3 (2 Good) (2 film)) is one")
        yield line.number, {"text": " ".join(words), "label": root["label"]}


def coarse_and_fine(path: Path, errors: str, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines `COARSE:fine text` (TREC's questions): `text`, `label`, which is COARSE, and `fine`, COARSE:fine."""
    for line in _lines(path, errors, encoding):
        if not line.text.strip():
            continue
        both, _, text = line.text.strip().partition(" ")
        coarse, separator, fine = both.partition(":")
        if not (separator and coarse and fine and text):
            raise UserError(f"{path}:{line.number}: no line of the form COARSE:fine text")
        yield line.number, {"text": text, "label": coarse, "fine": both}


def race(path: Path, errors: str, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """A folder with .txt files of JSON, one an article: `article`, `question`, `options`, and `answer` as a letter."""
    files = sorted(path.rglob("*.txt"))
    if not files:
        raise UserError(f"{path}: no folder with RACE's .txt files")
    number = 0
    for file in files:
        try:
            text = "".join(line.text for line in LineReader(file, errors, encoding=encoding).whole())
            record = json_value(text, any_number=True)
            rows = list(zip(record["questions"], record["options"], record["answers"], strict=True))
            article = record["article"]
        except RepeatedKey as error:
            raise UserError(f"{file}:{error.line}: {error.problem}; mend it") from None
        except (ValueError, KeyError, TypeError):
            raise UserError(
                f"{file}: no article of RACE: an object with article, questions, options and answers, as many of each"
            ) from None
        for question, options, answer in rows:
            number += 1
            yield number, {"article": article, "question": question, "options": options, "answer": answer}


def _lines(path: Path, errors: str, encoding: str) -> Iterator[Any]:
    require_file(path)
    return LineReader(path, errors, encoding=encoding).whole()


Records = Callable[[Path, str, str], Iterator[tuple[int, dict[str, Any]]]]


def _columns(records: Records) -> Callable[[Path, Sequence[str], str, str], Iterator[tuple[int, list[Any]]]]:
    def rows(path: Path, names: Sequence[str], errors: str, encoding: str) -> Iterator[tuple[int, list[Any]]]:
        for line, record in records(path, errors, encoding):
            yield line, [record[existing(name, list(record), str(path), "column", "")] for name in names]

    return rows


LAYOUTS: Mapping[str, Callable[[Path, Sequence[str], str, str], Iterator[tuple[int, list[Any]]]]] = {
    "class_folders": _columns(class_folders),
    "trees": _columns(trees),
    "coarse_and_fine": _columns(coarse_and_fine),
    "race": _columns(race),
}
"""Readers by layout: functions from file, names of columns, errors and encoding to lines and values."""
