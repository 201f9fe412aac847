"""Which of several choices the labels of a file mean."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bakeoff.errors import UserError
from bakeoff.tasks.reading.labels import label_text


class Meanings(NamedTuple):
    """The choice that a label means in each way of reading it, as its index; -1: none."""

    text: int
    """As the text of a choice."""
    column: int
    """As the name of a choice's column."""
    place: int
    """As a place."""
    letter: int
    """As a letter from A on."""


class ChoiceLabels:
    """The labels of the rows of a file.

    All are read in the one way in which all mean a choice: a file whose labels are places may have choices that are
    numbers. Where there is no such way, each is read in the first way in which it means one.
    """

    def __init__(self, column: str, columns: Sequence[str], first_choice: int) -> None:
        """Read labels of a column; `columns` are those of the choices, empty where one holds their list."""
        self._column, self._columns, self._first = column, list(map(label_text, columns)), first_choice
        self._rows: list[Meanings] = []

    def add(self, label: Any, choices: Sequence[Any], where: str) -> None:
        """Read the label of one more row.

        Raises:
            UserError: it means none of the choices in any way.
        """
        text, texts = label_text(label), list(map(label_text, choices))
        number = int(text) - self._first if text.isdecimal() else -1
        letter = ord(text.upper()) - ord("A") if len(text) == 1 and text.isalpha() else -1
        meanings = Meanings(
            texts.index(text) if texts.count(text) == 1 else -1,
            self._columns.index(text) if text in self._columns else -1,
            number if number < len(texts) else -1,
            letter if letter < len(texts) else -1,
        )
        if isinstance(label, bool) or max(meanings) < 0:
            raise UserError(
                f"{where}: '{text}' is none of the {len(texts)} choices (column '{self._column}'): give its place from "
                f"{self._first} on, a letter from A on, or its text"
            )
        self._rows.append(meanings)

    def indices(self) -> list[int]:
        """The index of the right choice of each row."""
        for meant in zip(*self._rows, strict=True):
            if min(meant) >= 0:
                return list(meant)
        return [next(index for index in meanings if index >= 0) for meanings in self._rows]
