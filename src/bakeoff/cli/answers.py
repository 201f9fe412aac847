"""Verbs that answer texts: where these come from, and how answers are printed, in order and as soon as known."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

from bakeoff.display.terminal import tell, write, write_json
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.inference.text_files import Texts

_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

TextsFile = Annotated[
    Path | None,
    typer.Option(
        help=(
            "File of texts: .jsonl, .csv, .tsv, .parquet, or plain text with one text per line. Default: -, standard"
            " input."
        )
    ),
]


def texts_of(
    arguments: Sequence[Sequence[str]],
    file: Path | None,
    columns: Sequence[str],
    named: bool,
    errors: Literal["strict", "replace"],
    options: Sequence[str],
) -> "Texts":
    """The texts of a call: its arguments, or those of a file or of standard input.

    Args:
        arguments: texts, and the second texts of pairs where there are such.
        file: the file; None: standard input, where there are no arguments.
        columns: the columns of a file that has some.
        named: the user has named them.
        errors: invalid UTF-8 in the file is an error, or is replaced.
        options: those that name the columns.

    Raises:
        UserError: texts come from two places, or the file cannot be read.
    """
    from bakeoff.inference.text_files import STANDARD_INPUT, TextFile, in_memory

    if any(arguments):
        if file is not None or named:
            raise UserError(f"texts are given as arguments; --texts and {', '.join(options)} are for texts of a file")
        return in_memory(*arguments)
    texts = TextFile(file or STANDARD_INPUT, columns, named, errors, options)
    if not texts.once:
        texts.count()
    return texts


def print_answers(parts: Iterable[Iterable[str]]) -> None:
    """Print answers, some of them at once."""
    for part in parts:
        for line in part:
            write(line)
        sys.stdout.flush()


def print_json_answers(parts: Iterable[Iterable[Any]]) -> None:
    """Print answers as a JSON array, an entry a line."""
    opening = "["
    for part in parts:
        for entry in part:
            write_json(opening + json.dumps(entry, ensure_ascii=False), end="")
            opening = ",\n"
        sys.stdout.flush()
    write_json("[]" if opening == "[" else "\n]")


class Answered(Protocol):
    """An answer, and what it answers."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both of a pair."""
        ...


Answer = TypeVar("Answer", bound=Answered)


class Blank:
    """Counts the blank ones among texts that go by, to say at the end what they got."""

    def __init__(self) -> None:
        self.texts = self.blank = 0

    def counted(self, part: Sequence[Answer]) -> Sequence[Answer]:
        """The answers, their texts counted."""
        self.texts += len(part)
        self.blank += sum(not any(map(str.strip, each.texts)) for each in part)
        return part

    def tell(self, got: str) -> None:
        """Say on standard error what blank ones got, where there are some."""
        if self.blank:
            tell(f"{self.blank:,} of {self.texts:,} texts blank: {got}")


def on_one_line(text: str, tabs: bool = False) -> str:
    """The text with line breaks, and tabs if asked for, as escapes, where a line is an answer."""
    found = _BREAKS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
    return found.replace("\t", "\\t") if tabs else found
