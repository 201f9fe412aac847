"""Which of several choices the labels of a file mean."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal

from bakeoff.errors import UserError
from bakeoff.tasks.reading.labels import label_text

Way = Literal["text", "column", "place", "letter"]
"""What a label may be: the text of a choice, the name of its column, its place, or a letter from A on."""

WAYS: tuple[Way, ...] = ("text", "column", "place", "letter")
"""The ways in the order in which they are tried."""


_LONGEST_PLACE = 10  # digits


class ChoiceLabels:
    """The labels of the rows of a file.

    All are read in the first of `WAYS` in which all mean a choice, so that places stay places where choices are
    numbers, too. Where there is no such way, labels that mean one choice only are read one by one.
    """

    def __init__(self, column: str, columns: Sequence[str], first_choice: int, way: Way | None = None) -> None:
        """Read labels of a column.

        Args:
            column: the column of the labels, for errors.
            columns: the columns of the choices; empty where one holds their list.
            first_choice: the place of the first choice.
            way: what all labels are; None: it follows from them.
        """
        self._column, self._columns, self._first = column, list(map(label_text, columns)), first_choice
        self._ways = WAYS if way is None else (way,)
        self._rows: list[tuple[str, dict[Way, int]]] = []
        self._numbers = True

    def add(self, label: Any, choices: Sequence[str], where: str) -> None:
        """Read the label of one more row.

        Raises:
            UserError: it means none of the choices.
        """
        text, texts = label_text(label), list(map(label_text, choices))
        meant: dict[Way, int] = {
            "text": texts.index(text) if texts.count(text) == 1 else -1,
            "column": self._columns.index(text) if text in self._columns else -1,
            "place": int(text) - self._first if text.isdecimal() and len(text) < _LONGEST_PLACE else -1,
            "letter": ascii_uppercase.find(text.upper()) if len(text) == 1 else -1,
        }
        able = {way: meant[way] for way in self._ways if 0 <= meant[way] < len(texts)}
        if isinstance(label, bool) or not able:
            none = f"'{text}' is none of the {len(texts)} choices (column '{self._column}')"
            raise UserError(f"{where}: {none}: {self._advice()}")
        self._rows.append((f"{where}: '{text}'", able))
        self._numbers &= not isinstance(label, str)

    def _advice(self) -> str:
        """What to give in place of a label that means no choice."""
        asked = {
            "place": f"its place from {self._first} on",
            "letter": "a letter from A on",
            "text": "its text",
            "column": "the name of its column",
        }
        if len(self._ways) == 1:
            return f"give {asked[self._ways[0]]}, as all labels of the task are read (label_is: {self._ways[0]})"
        return f"give {asked['place']}, {asked['letter']}, or {asked['text']}"

    @property
    def way(self) -> Way | None:
        """What all labels are; None: there is no one way to read all."""
        first: tuple[Way, ...] = ("column", "place") if self._numbers else ()  # since choices are texts
        able = (way for way in (*first, *self._ways) if all(way in each for _, each in self._rows))
        return next(able, None) if self._rows else None

    def indices(self) -> list[int]:
        """The index of the right choice of each row.

        Raises:
            UserError: there is no one way to read all labels, and one of them may mean several choices.
        """
        if (way := self.way) is not None:
            return [each[way] for _, each in self._rows]
        for shown, each in self._rows:
            if len({*each.values()}) > 1:
                raise UserError(
                    f"{shown} may be {' or '.join(each)}, and no one of {', '.join(WAYS)} reads all labels of the "
                    "file; mend them, or say which by label_is"
                )
        return [next(iter(each.values())) for _, each in self._rows]
