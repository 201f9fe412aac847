"""A row of a labelled file, as a kind of task reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bakeoff.reading.aligned import clean


@dataclass(frozen=True)
class Example:
    """One row of a labelled file; kinds add the label, which is None where the file does not say it."""

    line: int
    """The line of the file on which the row ends."""
    texts: tuple[str, ...]
    """All texts of the row; a row of test with the texts of a row of train is no test."""

    @cached_property
    def alike(self) -> tuple[str, ...]:
        """What rows with the same texts have in common: the texts in NFC with single spaces, as models read them."""
        made = ((clean(text), text) for text in self.texts)
        return tuple(text if read == text else read for read, text in made)  # without a second copy in memory

    @property
    def stratum(self) -> str:
        """The group of which a held-out split has its share: the class, where there are classes."""
        return ""

    @property
    def as_read(self) -> tuple[str, ...]:
        """The texts as a tokenizer reads them; words of a sentence are one text."""
        return self.texts

    @property
    def as_given(self) -> tuple[str, ...]:
        """The texts as files of answers have them; words of a sentence are one text."""
        return self.texts

    @property
    def together(self) -> tuple[str, ...]:
        """The key of rows that stay together where a split is held out: their texts, or the subject of these."""
        return self.alike

    @property
    def cluster(self) -> tuple[str, ...]:
        """The key of rows that are no independent examples of a test, such as questions on one article."""
        return self.together

    @property
    def labels(self) -> Sequence[tuple[str, str]]:
        """(label, text that has it) for each label of the row that is counted; empty where labels are no names."""
        return [(self.stratum, " | ".join(text for text in self.texts if text))] if self.stratum else []


@dataclass(frozen=True)
class LeftOut(Example):
    """A row of a labelled file that is not used; readers of examples skip it."""

    reason: str = ""
    """The reason, as it stands after "3 rows left out: the row"."""


def sides_of(examples: Sequence[Example]) -> tuple[list[str], list[str] | None]:
    """(N,) the first texts of N examples, and (N,) the second texts where examples are pairs, else None."""
    firsts = [each.texts[0] for each in examples]
    return firsts, [each.texts[1] for each in examples] if examples and len(examples[0].texts) > 1 else None
