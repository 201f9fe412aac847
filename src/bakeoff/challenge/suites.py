"""Suites of sentences of which one is right, in the files of the official pipeline, and how these are read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.json_files import MOST_OF_LINES, parse_json
from bakeoff.reading.files import TEXT, kind_of
from bakeoff.reading.tables import open_table


class Choice(NamedTuple):
    """Texts of which one is right, and the part of each that is scored."""

    field: str
    """The field that the item belongs to; accuracies are means over fields."""
    texts: tuple[str, ...]
    """The texts."""
    begins: tuple[int, ...]
    """The first scored character of each text; 0: all of it."""
    answers: tuple[str, ...]
    """What a prediction gives for each text."""
    right: int = 0
    """The index of the right text."""
    digest: str = ""
    """A digest of the item, where it is submitted by it."""


class Sizes(NamedTuple):
    """The official numbers of fields and of items."""

    fields: int | None
    """None: any."""
    items: int | None


class Suite(NamedTuple):
    """A suite of choices."""

    key: str
    """Its name in a submission."""
    title: str
    """Its name in tables."""
    full: str
    """The folder of its files in `full_eval`."""
    fast: str | None
    """The folder of its files in `fast_eval`; None: the last model alone is scored."""
    read: Callable[[Mapping[str, Any], str], Choice | None]
    """The item of a row of a file with a name without its ending; None: the row is left out."""
    sizes: Sizes
    """The sizes of the whole suite."""
    fast_sizes: Sizes | None = None
    """The sizes of the fast one."""
    groups: tuple[str, ...] = ()
    """Beginnings of the names of fields; the accuracy is the mean over these of means over fields. Empty: over all."""
    over_items: bool = False
    """Whether the accuracy is the mean over items instead."""
    ties: Literal["first", "shared", "wrong"] = "shared"
    """Of texts with equal scores, officially: the first is taken, or they share the point (in the strict tracks one is
    drawn, which comes to the same on average), or none is right."""
    per_token: bool = False
    """Whether sums of log-probabilities are divided by the number of their tokens."""
    as_lm_eval: bool = False
    """Whether texts are read and cut as lm-eval does, see `Completions.score`."""
    hidden: bool = False
    """Whether the organisers make the score of the sums, which are submitted."""
    version: int = 1
    """The version of the rules; scores by an older one are made anew."""
    tables: bool = False
    """Whether its files may be any tables, in folders, too: those that the Hub has of it."""

    def folder(self, evaluation: Path, fast: bool) -> Path | None:
        """The folder of the suite's files below the official `evaluation_data`."""
        if fast:
            return None if self.fast is None else evaluation / "fast_eval" / self.fast
        return evaluation / "full_eval" / self.full


def _blimp(row: Mapping[str, Any], name: str) -> Choice:
    sentences = text_of(row, "sentence_good"), text_of(row, "sentence_bad")
    return Choice(text_of(row, "UID") if "field" in row else name, sentences, (0, 0), sentences)


def _ewok(row: Mapping[str, Any], name: str) -> Choice:
    contexts = text_of(row, "Context1"), text_of(row, "Context2")
    target = text_of(row, "Target1")
    texts = tuple(f"{each} {target}" for each in contexts)
    return Choice(text_of(row, "Domain"), texts, tuple(map(len, contexts)), texts)


def _entity_tracking(row: Mapping[str, Any], name: str) -> Choice | None:
    before, options = text_of(row, "input_prefix"), several(row, "options")
    if any("nothing" in option for option in options):
        return None
    texts = tuple(before + each for each in options)
    return Choice(f"{name}_{row['numops']}_ops", texts, (len(before),) * len(options), options)


def text_of(row: Mapping[str, Any], key: str, *, blank: bool = False) -> str:
    """The text of a row under a key.

    Raises:
        KeyError: there is none.
        ValueError: it is no text, or it is blank, where that is not allowed.
    """
    value = row[key]
    if not isinstance(value, str) or not (blank or value.strip()):
        raise ValueError(f"{key} is {'no text' if blank else 'blank, or is no text'}")
    return value


def name_of(row: Mapping[str, Any], key: str) -> str:
    """The text of a row under a key, or its number, which tables of others have as a name or a short answer.

    Raises:
        KeyError: there is none.
        ValueError: it is neither, or it is blank.
    """
    value = row[key]
    return str(value) if isinstance(value, int | float) else text_of(row, key)


def several(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a row's list under a key.

    Raises:
        KeyError: there is none.
        ValueError: it is no list of texts that are not blank.
    """
    texts = row[key]
    if not isinstance(texts, Sequence | np.ndarray) or isinstance(texts, str):
        raise ValueError(f"{key} is no list of texts")
    if not all(isinstance(each, str) and each.strip() for each in texts):
        raise ValueError(f"a text of {key} is blank, or is no text")
    return tuple(texts)


def whole_number(row: Mapping[str, Any], key: str) -> int:
    """The whole number of a row under a key, which may be written as a text.

    Raises:
        KeyError: there is none.
        ValueError: it is something else.
    """
    value = row[key]
    try:
        number = int(value)
        if isinstance(value, str) or number == value:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"the {key} {value!r} is not a whole number")


def solutions(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts of `solution0`, `solution1` and so on; those at the end that are null or empty are none.

    Raises:
        ValueError: one of them is blank, or is no text or number.
    """
    count = next(index for index in range(len(row) + 1) if f"solution{index}" not in row)
    while count and row[f"solution{count - 1}"] in (None, ""):  # as a .csv has it where other rows have more
        count -= 1
    return tuple(name_of(row, f"solution{index}") for index in range(count))


def _comps(row: Mapping[str, Any], name: str) -> Choice:
    phrase = text_of(row, "property_phrase")
    texts = tuple(f"{text_of(row, key)} {phrase}" for key in ("prefix_acceptable", "prefix_unacceptable"))
    field = name.removeprefix("comps_").replace("-", "_")
    return Choice(field, texts, tuple(len(text) - len(phrase) for text in texts), texts)


def _global_piqa(row: Mapping[str, Any], name: str) -> Choice:
    prompt, answers = text_of(row, "prompt"), solutions(row)
    texts = tuple(f"{prompt} {each}" for each in answers)
    begins = (len(prompt),) * len(answers)
    return Choice(str(row["example_id"]), texts, begins, answers, whole_number(row, "label"))


_PIQA = "global_piqa_parallel", "global_piqa_nonparallel"

_suite = partial(Suite, version=2)

SUITES = (
    _suite("blimp", "BLiMP", "blimp_filtered", "blimp_fast", _blimp, Sizes(67, 59_875), Sizes(67, 67 * 200)),
    _suite(
        "blimp_supplement",
        "supplement",
        "supplement_filtered",
        "supplement_fast",
        _blimp,
        Sizes(5, 5_218),
        Sizes(5, 5 * 50),
    ),
    _suite("ewok", "EWoK", "ewok_filtered", "ewok_fast", _ewok, Sizes(11, 7_618), Sizes(11, 11 * 100)),
    _suite(
        "entity_tracking",
        "entity tracking",
        "entity_tracking",
        "entity_tracking_fast",
        _entity_tracking,
        Sizes(18, 6_780),
        Sizes(6, 2_238),
        ("regular", "ambiref", "move_contents"),
    ),
    _suite("comps", "COMPS", "comps", None, _comps, Sizes(4, 91_028)),
    _suite(
        _PIQA[0],
        "GlobalPIQA, parallel",
        _PIQA[0],
        _PIQA[0],
        _global_piqa,
        Sizes(103, 103),
        Sizes(103, 103),
        per_token=True,
    ),
    _suite(
        _PIQA[1],
        "GlobalPIQA, nonparallel",
        _PIQA[1],
        _PIQA[1],
        _global_piqa,
        Sizes(100, 100),
        Sizes(100, 100),
        per_token=True,
    ),
)
"""The suites of choices, as babylm-org/babylm-eval has them in July 2026."""


ABOUT_DATA = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
"""Files that the datasets library writes beside data."""


def files_of(folder: Path, tables: bool = False) -> list[Path]:
    """The files of a suite, in the order of their names; empty: there are none."""
    if not folder.is_dir():
        return []
    if tables:
        return sorted(each for each in folder.rglob("*") if _is_table(each))
    return sorted(folder.glob("*.jsonl"))


def _is_table(path: Path) -> bool:
    return path.name not in ABOUT_DATA and path.is_file() and kind_of(path) not in (None, TEXT)


def not_lines(folder: Path) -> list[str]:
    """The names of files that might be tables and are not read: .json files that hold no object a line."""
    found = folder.rglob("*.json") if folder.is_dir() else ()
    return sorted(each.name for each in found if each.is_file() and each.name not in ABOUT_DATA and not _is_table(each))


def read_choices(suite: Suite, folder: Path) -> list[Choice]:
    """All items of a suite, file by file; a file of tables is a field, named after its folder if it has one.

    Raises:
        UserError: a file cannot be read, holds no rows, or a row lacks what the suite's rows have.
    """
    choices: list[Choice] = []
    for path in files_of(folder, suite.tables):
        before = len(choices)
        inside = suite.tables and path.parent != folder
        name = path.relative_to(folder).parts[0] if inside else path.name.split(".")[0] if suite.tables else path.stem
        for number, row in open_table(path).whole() if suite.tables else rows_of(path):
            try:
                choice = suite.read(row, name)
            except (KeyError, ValueError) as error:
                raise UserError(f"{path}:{number}: no row of {suite.title}: {_lack(error)}") from None
            if choice is None:
                continue
            if len(choice.texts) < 2 or not 0 <= choice.right < len(choice.texts):
                raise UserError(
                    f"{path}:{number}: {len(choice.texts)} answers, of which number {choice.right} is right"
                )
            choices.append(choice)
        if len(choices) == before:
            raise UserError(f"{path}: the file holds no rows")
    return choices


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a .jsonl file that are not blank, each with the number of its line.

    Raises:
        UserError: the file cannot be read, or a line is no JSON object.
    """
    for number, line in enumerate(checksums.read(path, MOST_OF_LINES).splitlines(), 1):
        if line.strip():
            yield number, parse_json(line, f"{path}:{number}")


def _lack(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
