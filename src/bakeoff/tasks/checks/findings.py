"""Findings of `check` on labelled data."""

from typing import Literal

from pydantic import Field

from bakeoff.config import Config
from bakeoff.tokenizer.hidden import HiddenText


class LabelFinding(Config):
    """The occurrences of one label in one split."""

    label: str
    """The label's name."""
    count: int
    """The number of times that the label stands in the split."""
    share: float
    """The label's share of all labels of the split."""
    example: str
    """The first text with the label, cut."""
    line: int
    """The line on which the example ends."""


class LengthFinding(Config):
    """The lengths of the examples of a split, in tokens of a row (special tokens included) or in words."""

    unit: Literal["tokens", "words"]
    """The unit of the lengths: tokens of rows where there is a tokenizer, else words."""
    mean: float
    """The mean length."""
    quantiles: dict[str, int]
    """The quantiles of the lengths at 0, 50, 90, 99 and 100 %."""
    limit: int | None = None
    """The length to which rows are cut, or of the windows in which long texts are read; None: not known."""
    longer: float | None = None
    """The share of rows that are longer than the limit; None without a limit."""


class SplitFinding(Config):
    """The findings on one split of the data."""

    split: str
    """train, dev or test."""
    file: str
    """The file from which the split comes."""
    examples: int
    """The number of examples."""
    blank: int
    """The number of texts, or in tagging words, that are blank and should not be."""
    blank_unit: str = "text"
    """What is counted as blank: text, or word."""
    damaged: int
    """The number of examples with U+FFFD, which stands for bytes that are no valid text."""
    repeated: int
    """The number of examples with the texts and the label of an earlier one of the split."""
    contradictory: int
    """The number of examples with the texts of an earlier one of the split, but another label."""
    first_contradiction: tuple[int, int] | None = None
    """The lines of the first two examples that contradict each other."""
    labels: list[LabelFinding] = Field(default=[])
    """All labels, the most frequent first; empty where labels are no names."""
    lengths: LengthFinding
    """The lengths of the examples."""
    hidden: HiddenText | None = None
    """Counts of unknown tokens in the texts, and of the characters that they hide; None without a tokenizer."""


class TaskFindings(Config):
    """The findings on a task's data."""

    task: str
    """The task's name."""
    kind: str
    """The kind of the task."""
    metric: str | None
    """The metric by which dev decides; None where nothing could be learned."""
    simplest: dict[str, float] = Field(default={})
    """The scores on test of predictions without a model."""
    splits: list[SplitFinding]
    """The findings on each split that could be read."""
    overlaps: dict[str, int]
    """The number of examples of one split with texts of another, by names such as `test in train`."""
    notes: list[str]
    """The notes that a training on this data will have."""
    warnings: list[str]
    """Probable mistakes, and properties of the data that will mislead."""
    problems: list[str]
    """Errors for which a training would be refused."""
