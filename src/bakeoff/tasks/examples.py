"""A row of a labelled file, as a kind of task reads it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """What one row of a file holds; kinds add what is to be predicted, None where the file does not say it."""

    line: int
    """The line of the file on which it ends."""
    texts: tuple[str, ...]
    """All that is read of it: the same texts in two splits of the data are no test."""

    @property
    def stratum(self) -> str:
        """The group of which a split that is held out has its share: the class, where there are classes."""
        return ""

    @property
    def together(self) -> tuple[str, ...]:
        """Rows that have this in common stay together where a split is held out: the texts, or what they are about."""
        return self.texts

    @property
    def labels(self) -> Sequence[tuple[str, str]]:
        """Each of its labels that is counted, and the text that it stands for; none where they are no names."""
        return [(self.stratum, " | ".join(text for text in self.texts if text))] if self.stratum else []


@dataclass(frozen=True)
class LeftOut(Example):
    """A row of a labelled file that is not used; those who read a file for its examples pass it over."""

    reason: str = ""
    """Why, as behind "3 rows were left out: the row"."""
