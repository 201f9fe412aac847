"""Files of questions on contexts: SQuAD's JSON (versions 1.1 and 2.0, DuReader, CMRC), and files with columns.

A question without answers cannot be answered from its context, as in SQuAD 2.0 (Rajpurkar et al. 2018).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.json_files import JsonError, RepeatedKey, json_value
from bakeoff.reading.aligned import clean
from bakeoff.reading.files import COLUMNAR, LineReader, kind_of, require_file
from bakeoff.reading.hub import on_hub
from bakeoff.reading.table_reader import text_value
from bakeoff.reading.tables import open_table
from bakeoff.tasks.examples import Example
from bakeoff.tasks.reading.gold_answers import GoldAnswer, placed

MANY_ARTICLES = 20
"""The number of articles from which whole articles stay together where a split is held out; below it, contexts do."""

_JSON = re.compile(r"\.json(\.gz|\.zst)?$", re.IGNORECASE)

Errors = Literal["strict", "replace"]

ANSWERED = "an answer"
"""The label, in counts, of a question that has an answer."""


@dataclass(frozen=True)
class Question(Example):
    """A question on a context; `texts` holds the question and the context."""

    answers: tuple[GoldAnswer, ...] | None = None
    """The answers, any of which is right; empty where the context has no answer."""
    name: str = ""
    """The name of the question in the file; empty where it has none."""
    article: str = ""
    """The title of the context's article; empty where the file has none."""
    by_article: bool = False
    """Whether the file has so many articles that a split is held out by these, and not by contexts."""

    @property
    def context(self) -> str:
        """The text in which the answer stands."""
        return self.texts[1]

    @property
    def place(self) -> str:
        """The name of the question in errors and notes."""
        return f"question {self.name}" if self.name else f"line {self.line}"

    @property
    @override
    def together(self) -> tuple[str, ...]:
        return ((self.article if self.by_article else "") or clean(self.context),)

    @property
    @override
    def cluster(self) -> tuple[str, ...]:
        return (self.article or clean(self.context),)

    @property
    @override
    def labels(self) -> Sequence[tuple[str, str]]:
        """One label: whether the question has an answer."""
        return [(ANSWERED if self.answers else "no answer", self.texts[0])]


class QuestionColumns(NamedTuple):
    """The names of the columns of a .csv, .tsv or .jsonl."""

    question: str
    """The column with the question."""
    context: str
    """The column with the context."""
    answer: str
    """The column with the answer's text, empty where there is none; in .jsonl also a list of texts, or an object with
    lists `text` and `answer_start`."""
    start: str | None
    """The column with the character of the context at which the answer begins; None: the first place of its text."""


def read_questions(
    path: Path, columns: QuestionColumns, labelled: bool, errors: Errors, encoding: str = "utf-8"
) -> Iterator[Question]:
    """The questions of a file.

    Args:
        path: .json in the layout of SQuAD; .csv, .tsv or .jsonl; each plain, .gz or .zst; .parquet, .arrow, or a data
            set of the Hub.
        columns: the names of the columns, for files with columns.
        labelled: whether answers are read.
        errors: invalid text is an error, or is replaced.
        encoding: the encoding of the file.

    Raises:
        UserError: there is no such file or column, or a mistake in it; with its line, or the question's name.
    """
    if not on_hub(path):
        require_file(path)
    articles = _layout(path, LineReader(path, errors, encoding=encoding))
    if articles is None:
        rows = _of_table(path, columns, labelled, errors, encoding)
    else:
        rows = _of_articles(path, articles, labelled, errors)
    empty = True
    for each in rows:
        empty = False
        yield each
    if empty:
        raise UserError(f"{path}: the file holds no questions")


def is_layout(path: Path) -> bool:
    """Whether a file has the name of a file in SQuAD's layout."""
    return _JSON.search(path.name) is not None


def _layout(path: Path, lines: LineReader) -> list[Any] | None:
    """The articles of a file in SQuAD's layout; None for a file with columns."""
    if not is_layout(path):
        return None
    try:
        text = "".join(line.text for line in lines.whole())
        if not text.strip():
            raise UserError(f"{path}: the file is empty")
        values = json_value(text, any_number=True)
    except JsonError as error:
        if kind_of(path) == ".jsonl":  # one object a line
            return None
        problem = f"broken JSON ({error.problem}); is the file whole?"
        if isinstance(error, RepeatedKey):
            problem = f"{error.problem}; mend it"
        raise UserError(f"{path}{f':{error.line}' if error.line else ''}: {problem}") from None
    if isinstance(values, dict) and isinstance(values.get("data"), list):
        return list(values["data"])
    if isinstance(values, dict) and kind_of(path) == ".jsonl":  # a single row
        return None
    raise UserError(
        f"{path}: not the layout of SQuAD, an object with 'data', a list of articles with 'paragraphs'; give such a "
        "file, or .jsonl with columns"
    )


def _of_articles(path: Path, articles: list[Any], labelled: bool, errors: Errors) -> Iterator[Question]:
    number = 0
    many = len(articles) >= MANY_ARTICLES
    for count, article in enumerate(articles, 1):
        where = f"{path}: article {count}"
        paragraphs = _field(article, "paragraphs", list, where)
        title = str(article.get("title") or "")
        for index, paragraph in enumerate(paragraphs, 1):
            inside = f"{where}, paragraph {index}"
            context = text_value(_field(paragraph, "context", str, inside), inside, "context", errors)
            for asked in _field(paragraph, "qas", list, inside):
                number += 1
                name = str(_field(asked, "id", str | int, inside, ""))
                here = f"{path}: question {name or number}"
                question = text_value(_field(asked, "question", str, here), here, "question", errors)
                answers = _answers_of(asked, context, here, errors) if labelled else None
                yield Question(number, (question, context), answers, name or f"{number}", title, many)


def _answers_of(asked: dict[str, Any], context: str, where: str, errors: Errors) -> tuple[GoldAnswer, ...]:
    impossible = _field(asked, "is_impossible", bool, where, False)
    entries = _field(asked, "answers", list, where, [] if impossible else None)
    answers = []
    for each in entries:
        text = text_value(_field(each, "text", str, where), where, "text", errors)
        if text.strip():
            answers.append(placed(text, _field(each, "answer_start", int, where, None, optional=True), context, where))
    if answers and impossible:
        raise UserError(f"{where}: 'is_impossible' is true, and it has answers; take one of the two away")
    return tuple(answers)


def _field(holder: Any, key: str, kind: Any, where: str, absent: Any = None, optional: bool = False) -> Any:
    """A field of an object, of the type `kind`; `absent` where the field is missing."""
    if not isinstance(holder, dict):
        raise UserError(f"{where}: {type(holder).__name__} stands where an object with '{key}' should; mend it")
    value = holder.get(key)
    if value is None and (absent is not None or optional):
        return absent
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        what = "is missing" if value is None else f"holds {type(value).__name__} instead of {_spelt(kind)}"
        raise UserError(f"{where}: '{key}' {what}; mend it")
    return value


def _spelt(kind: Any) -> str:
    return {str: "text", list: "a list", int: "a number", bool: "true or false"}.get(kind, "text")


def _of_table(
    path: Path, columns: QuestionColumns, labelled: bool, errors: Errors, encoding: str
) -> Iterator[Question]:
    if not on_hub(path) and kind_of(path) not in (".csv", ".tsv", ".jsonl", *COLUMNAR):
        raise UserError(
            f"{path}: questions are read from .json as SQuAD has it, .csv, .tsv or .jsonl, each plain, .gz or .zst, "
            "and .parquet or .arrow"
        )
    names = [columns.question, columns.context]
    names += [columns.answer, *([columns.start] if columns.start else [])] if labelled else []
    if len(set(names)) < len(names):
        raise UserError(f"{path}: each needs a column of its own, not {', '.join(names)}")
    advice = "; name the columns with --text-column (question), --pair-column (context) and --label-column (answer)"
    for line, cells in open_table(path, errors, encoding).rows(names, advice):
        where = f"{path}:{line}"
        question = text_value(cells[0], where, columns.question, errors)
        context = text_value(cells[1], where, columns.context, errors)
        answers = None
        if labelled:
            pairs = list(_texts_and_starts(cells[2], cells[3] if columns.start else None, where, columns, errors))
            answers = tuple(placed(text, start, context, where) for text, start in pairs if text.strip())
        yield Question(line, (question, context), answers)


def _texts_and_starts(
    value: Any, starts: Any, where: str, columns: QuestionColumns, errors: Errors
) -> Iterator[tuple[str, int | None]]:
    """The texts of a row's answers, and the start that the row gives for each."""
    if isinstance(value, dict):  # as the library `datasets` has SQuAD
        value, starts = value.get("text"), value.get("answer_start", starts)
    texts: Sequence[Any] = value if isinstance(value, list) else [value]
    numbers = starts if isinstance(starts, list) else [starts] * len(texts)
    if len(numbers) != len(texts):
        raise UserError(f"{where}: {len(texts)} answers and {len(numbers)} starts; each answer has one")
    for text, start in zip(texts, numbers, strict=True):
        yield text_value(text, where, columns.answer, errors), _start(start, where, columns.start or "answer_start")


def _start(value: Any, where: str, name: str) -> int | None:
    """A place in characters, which is text in a .csv."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        return int(value)
    except (ValueError, TypeError):
        raise UserError(
            f"{where}: '{name}' holds '{str(value)[:40]}'; give the number of the context's character, from 0, at "
            "which the answer begins"
        ) from None
