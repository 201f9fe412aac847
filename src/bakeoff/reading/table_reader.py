"""The contract of all readers of rows with named values, whatever the file is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError, is_utf8


class TableReader(ABC):
    """Reader of a file of rows with named values, within a bounded memory; a file may be read more than once.

    Args:
        path: the file, or the name of a data set of the Hub.
        errors: invalid text is an error ("strict"), or is replaced ("replace").
    """

    has_lines = False
    """Whether the numbers of rows are those of lines, in which a mistake can be looked up."""

    def __init__(self, path: Path | str, errors: str) -> None:
        self.path, self.errors = path, errors

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns, or of the fields of the first row; empty if the file is empty.

        Raises:
            UserError: the file, or its first row, is broken.
        """

    @abstractmethod
    def rows(self, names: Sequence[str], advice: str = "", skip: int = 0) -> Iterator[tuple[int, list[Any]]]:
        """The line on which each row ends, or its number from 1 in files without lines, and its values of some columns.

        Args:
            names: the columns, in the order in which their values are wanted.
            advice: advice for the error about a missing column.
            skip: number of rows to pass over.

        Raises:
            UserError: a column is missing, or the file has a mistake (with its line or row).
        """

    @abstractmethod
    def position(self) -> int:
        """Approximate number of bytes on disk that have been read."""

    def whole(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line or number of each row, and all of its values by their names; errors as of `rows`."""
        yield from self.by_name(self.names())

    def by_name(self, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The line or number of each row, and its values of some columns by their names; errors as of `rows`."""
        yield from ((number, dict(zip(names, values, strict=True))) for number, values in self.rows(names))

    def texts(self, names: Sequence[str], advice: str = "", skip: int = 0) -> Iterator[tuple[str, ...]]:
        """The values of each row in some columns, which hold texts; a missing value is the empty text.

        Raises:
            UserError: as of `rows`; or a value is no text.
        """
        for number, values in self.rows(names, advice, skip):
            where = f"{self.path}:{number}" if self.has_lines else f"{self.path}, row {number}"
            yield tuple(text_value(value, where, name, self.errors) for value, name in zip(values, names, strict=True))


def text_value(value: Any, where: str, name: str, errors: str) -> str:
    """A field's value as text; a missing value is the empty text.

    Args:
        value: as `TableReader.rows` yields it.
        where: file and line.
        name: the field's name.
        errors: "strict" refuses half of a surrogate pair, which JSON can spell and which is no character; "replace"
            reads it as U+FFFD.

    Raises:
        UserError: the value is no text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UserError(f"{where}: '{name}' holds {type(value).__name__} instead of text")
    return whole_characters(value, where, errors)


def whole_characters(text: str, where: str, errors: str) -> str:
    """The text, after a check that it has no half of a surrogate pair.

    Args:
        text: the text.
        where: file and line, for errors.
        errors: "strict" refuses such a half; "replace" reads it as U+FFFD.

    Raises:
        UserError: there is one.
    """
    if is_utf8(text):
        return text
    if errors == "strict":
        raise UserError(
            f"{where}: half of a surrogate pair (\\ud8...) is not a character; mend the file, or give --errors replace "
            "to read it as �, where the command has it"
        )
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
