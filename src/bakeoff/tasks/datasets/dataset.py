"""The description of a published data set: its kind of task, its files, its columns and its metric."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SPLITS = ("train", "dev", "test")
"""The splits of a task's data."""

Split = Literal["train", "dev", "test"]
"""The name of a split."""

HUB_SPLITS: Mapping[Split, str] = {"train": "train", "dev": "validation", "test": "test"}
"""What data sets on the Hub mostly call them."""


@dataclass(frozen=True)
class Form:
    """One way in which a data set's files lie in a folder."""

    train: tuple[str, ...]
    """Names that the file, or folder, may have, patterns such as `*-ud-train.conllu` among them; any may be .gz or
    .zst too."""
    dev: tuple[str, ...] = ()
    """Names of the file of dev; none: dev is held out of train."""
    test: tuple[str, ...] = ()
    """Names of the file of test; none: test is held out of train."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Columns, and whatever else the task's config needs to read the files."""
    remark: str = ""
    """What a reader of the results must know."""

    def names(self, split: str) -> tuple[str, ...]:
        """The names of the files of a split."""
        names: tuple[str, ...] = getattr(self, split)
        return names


@dataclass(frozen=True)
class HubForm:
    """A data set as the Hugging Face Hub has it."""

    repository: str
    """OWNER/NAME, or OWNER/NAME:CONFIG, of a data set that has this form; others may have it as well."""
    splits: Mapping[Split, str]
    """The Hub's name of each split; a split without one is held out of train."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Columns, and whatever else the task's config needs to read the rows."""
    remark: str = ""
    """What a reader of the results must know."""


@dataclass(frozen=True)
class DataSet:
    """A published data set."""

    title: str
    """Its name and source."""
    kind: str
    """The kind of task."""
    forms: tuple[Form, ...]
    """The ways in which its files are found; the first that can be read is taken."""
    settings: Mapping[str, Any]
    """What all forms have in common."""
    hub: HubForm
    """The data set on the Hub."""
