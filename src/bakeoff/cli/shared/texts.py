"""Verbs that work on texts: the source of the texts, and results printed in order and as soon as they are known."""

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
    from bakeoff.reading.text_files import Texts
    from bakeoff.tokenizer.tokenizer import Tokenizer


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

TextColumn = Annotated[str | None, typer.Option(help="Column or field of --texts with the text. Default: text.")]


def texts_of(
    arguments: Sequence[Sequence[str]],
    file: Path | None,
    columns: Sequence[str],
    named: bool,
    errors: Literal["strict", "replace"],
    options: Sequence[str],
) -> "Texts":
    """The texts of a call, from its arguments, a file or standard input.

    Args:
        arguments: a list of texts; for pairs, also a list of the second texts.
        file: file of texts; None: standard input, if there are no arguments.
        columns: names of the columns with texts, for a file that has columns.
        named: whether the user has named the columns.
        errors: invalid UTF-8 in the file is an error (strict), or is replaced.
        options: names of the options that name the columns, and `OPTION` where that says how the file is read, for
            errors.

    Raises:
        UserError: texts come from two sources, or the file cannot be read.
    """
    from bakeoff.reading.records import OPTION
    from bakeoff.reading.text_files import STANDARD_INPUT, TextFile, in_memory

    if any(arguments):
        if file is not None or named:
            naming = ", ".join(option for option in options if option != OPTION)
            raise UserError(f"texts are given as arguments; --texts and {naming} are for texts of a file")
        return in_memory(*arguments)
    texts = TextFile(file or STANDARD_INPUT, columns, named, errors, options)
    if not texts.once:
        texts.count()
    return texts


def print_lines(parts: Iterable[Iterable[str]]) -> None:
    """Print lines, one per line; the output is flushed after each part."""
    for part in parts:
        for line in part:
            write(line)
        sys.stdout.flush()


def print_json(parts: Iterable[Iterable[Any]]) -> None:
    """Print results as a JSON array, one entry per line; the output is flushed after each part."""
    opening = "["
    for part in parts:
        for entry in part:
            write_json(opening + json.dumps(entry, ensure_ascii=False), end="")
            opening = ",\n"
        sys.stdout.flush()
    write_json("[]" if opening == "[" else "\n]")


class OfTexts(Protocol):
    """A result of one text or of a pair of texts."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text, or both texts of a pair."""
        ...


Result = TypeVar("Result", bound=OfTexts)


class Blank:
    """Counter of the texts that hold nothing for a model among all, for remarks at the end.

    Args:
        tokenizer: counts unknown tokens and the characters that they hide; None: only blank texts are counted.
        gap: what stands for missing text, and is itself none; empty: nothing does.
    """

    def __init__(self, tokenizer: "Tokenizer | None" = None, gap: str = "") -> None:
        from bakeoff.tokenizer.hidden import HiddenText

        self.tokenizer, self.gap, self.hidden = tokenizer, gap, HiddenText()
        self.texts = self.blank = 0

    def counted(self, part: Sequence[Result]) -> Sequence[Result]:
        """Count the texts of some results, and return the results unchanged."""
        self.texts += len(part)
        self.blank += sum(not any(map(str.strip, each.texts)) for each in part)
        if self.tokenizer is not None:
            from bakeoff.reading.aligned import clean

            texts = [text for each in part for text in each.texts]
            self.hidden += self.tokenizer.hidden(
                [clean(each.replace(self.gap, " ") if self.gap else each) for each in texts]
            )
        return part

    def tell(self, got: str) -> None:
        """Print remarks on blank texts and hidden characters on standard error; `got` is the result of a blank text."""
        if str(self.hidden):
            tell(str(self.hidden))
        if self.blank:
            tell(f"{self.blank:,} of {self.texts:,} texts blank: {got}")


def on_one_line(text: str, tabs: bool = False) -> str:
    """The text on one line: line breaks are written as escapes, and with `tabs` the tabs, too."""
    escaped = _BREAKS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
    return escaped.replace("\t", "\\t") if tabs else escaped
