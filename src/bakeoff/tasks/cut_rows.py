"""The rows of a split of which a part is not read, because they are longer than the model's rows."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from bakeoff.config import Config
from bakeoff.display.wording import counted, percent
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.writing import WritingItems

COUNTS = ("rows", "of_rows", "tokens", "of_tokens")
"""The counts of `CutRows`."""


class CutRows(Config):
    """The rows of a split that were cut, and the tokens that no model has read."""

    length: int
    """The most tokens of a row."""
    longest: int | None = None
    """The most tokens of a target that is written; None: nothing is written."""
    rows: int = Field(ge=0)
    """The number of rows of which a part is not read."""
    of_rows: int = Field(ge=0)
    """The number of all rows."""
    tokens: int = Field(ge=0)
    """The number of tokens that are not read."""
    of_tokens: int = Field(ge=0)
    """The number of tokens of all rows, special tokens left out."""

    @classmethod
    def of(cls, items: Items, length: int) -> "CutRows":
        """The rows of these items; `length` is the most tokens of a row."""
        lost, owners = items.encoded.lost, items.owners
        examples = len(np.unique(owners))
        # Windows of a text, or else a row for each text, and for some kinds several texts of an example.
        windows = items.encoded.owners is not None
        of_text = np.arange(len(lost)) if windows else np.repeat(owners, np.diff(items.bounds))[: len(lost)]
        return cls(
            length=length,
            longest=items.longest if isinstance(items, WritingItems) else None,
            rows=len(np.unique(of_text[lost > 0])),
            of_rows=examples,
            tokens=int(lost.sum()),
            of_tokens=items.encoded.tokens,
        )

    @property
    def share(self) -> float:
        """The share of the tokens that are not read."""
        return self.tokens / self.of_tokens if self.of_tokens else 0.0

    def of_split(self, name: str) -> str:
        """The rows in words: 317 of the 784 rows of test cut to 32 tokens: 23.1 % of the tokens are not read."""
        rows = f"{self.rows:,} of the {counted(self.of_rows, 'row')} of {name}"
        return f"{rows} cut to {self.length:,} tokens: {self.percent} of the tokens are not read"

    @property
    def percent(self) -> str:
        """The share of the tokens that are not read: 23.1 %."""
        if 0.9995 <= self.share < 1:
            return "more than 99.9 %"
        return "less than 0.1 %" if 0 < self.share < 0.001 else f"{percent(self.share)} %"


class CutTexts:
    """The cut rows of examples that come in several parts."""

    def __init__(self) -> None:
        self.all: CutRows | None = None

    def add(self, items: Items, length: int) -> None:
        """Count the rows of some more items."""
        cut, before = CutRows.of(items, length), self.all
        if before is not None:
            counts = {name: getattr(cut, name) + getattr(before, name) for name in COUNTS}
            cut = cut.model_copy(update=counts)
        self.all = cut

    def notes(self, of: str) -> Iterator[str]:
        """A note on the rows that were cut, if there are any; `of` names their file, or says what they are."""
        if self.all is not None and self.all.rows:
            yield self.all.of_split(of)
