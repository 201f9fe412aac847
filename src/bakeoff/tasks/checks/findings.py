"""What `check` finds of labelled data."""

from typing import Literal

from pydantic import Field

from bakeoff.config import Config


class LabelFinding(Config):
    """One label in one split."""

    label: str
    """The label's name."""
    count: int
    """How often it stands there."""
    share: float
    """The label's share of all labels of the split."""
    example: str
    """The first text that has it, cut."""
    line: int
    """The line on which that example ends."""


class LengthFinding(Config):
    """How long the examples of a split are; tokens are those of a row, special tokens included."""

    unit: Literal["tokens", "words"]
    """What is counted: tokens of rows where there is a tokenizer, else words."""
    mean: float
    """Mean length."""
    quantiles: dict[str, int]
    """Quantiles of the lengths at 0, 50, 90, 99 and 100 %."""
    limit: int | None = None
    """The length to which rows are cut, or in which long texts are read window by window."""
    longer: float | None = None
    """The share of rows that are longer."""


class SplitFinding(Config):
    """One split of the data."""

    split: str
    """train, dev or test."""
    file: str
    """The file that it comes from."""
    examples: int
    """How many there are."""
    blank: int
    """Texts that are blank and should not be."""
    damaged: int
    """Examples with U+FFFD, which stands for bytes that were no text."""
    repeated: int
    """Examples whose texts an earlier one of the split has, too, with the same label."""
    contradictory: int
    """Examples whose texts an earlier one of the split has with another label."""
    first_contradiction: tuple[int, int] | None = None
    """The lines of two of them."""
    labels: list[LabelFinding] = Field(default=[])
    """All labels, the most frequent first; none where labels are no names."""
    lengths: LengthFinding
    """How long they are."""


class TaskFindings(Config):
    """What was found of a task's data."""

    task: str
    """The task's name."""
    kind: str
    """The kind of the task."""
    metric: str | None
    """What dev decides by; None where nothing could be learned."""
    simplest: dict[str, float] = Field(default={})
    """The scores on test of answers without a model."""
    splits: list[SplitFinding]
    """Every split that could be read."""
    overlaps: dict[str, int]
    """How many examples of a split have texts that another has: `test in train`."""
    notes: list[str]
    """What a training on this data will say of it."""
    warnings: list[str]
    """What is probably a mistake, or will mislead."""
    problems: list[str]
    """What a training would be refused for."""
