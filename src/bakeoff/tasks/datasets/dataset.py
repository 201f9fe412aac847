"""Descriptions of published data sets: their kind of task, files, columns and metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SPLITS = ("train", "dev", "test")
"""The splits of a task's data."""

Split = Literal["train", "dev", "test"]
"""The name of a split."""

HUB_SPLITS: Mapping[Split, str] = {"train": "train", "dev": "validation", "test": "test"}
"""The usual names of the splits on the Hub."""


@dataclass(frozen=True)
class Form:
    """One layout of a data set's files in a folder."""

    train: tuple[str, ...]
    """Names that the file, or folder, of train may have, also patterns such as `*-ud-train.conllu`; each may be .gz or
    .zst, too."""
    dev: tuple[str, ...] = ()
    """Names that the file of dev may have; empty: dev is held out of train."""
    test: tuple[str, ...] = ()
    """Names that the file of test may have; empty: test is held out of train."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Columns, and other values of the task's config with which the files are read."""
    remark: str = ""
    """A note to readers of the results."""

    def names(self, split: str) -> tuple[str, ...]:
        """The names that the file of a split may have."""
        names: tuple[str, ...] = getattr(self, split)
        return names


@dataclass(frozen=True)
class HubForm:
    """The layout of a data set on the Hugging Face Hub."""

    repository: str
    """OWNER/NAME, or OWNER/NAME:CONFIG, of a data set with this layout; copies elsewhere may have it, too."""
    splits: Mapping[Split, str]
    """The Hub's name of each split; a split without one is held out of train."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Columns, and other values of the task's config with which the rows are read."""
    remark: str = ""
    """A note to readers of the results."""


@dataclass(frozen=True)
class DataSet:
    """A published data set."""

    title: str
    """The name and the source of the data set."""
    kind: str
    """The kind of its task, such as classification."""
    forms: tuple[Form, ...]
    """The layouts that a folder of its files may have; the first that can be read is taken."""
    settings: Mapping[str, Any]
    """Values of the task's config in all layouts."""
    hub: HubForm
    """The layout on the Hub."""
