"""Descriptions of published data sets, one YAML file each: their kind of task, files, columns and metric."""

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bakeoff.config import Config
from bakeoff.errors import UserError, nearest
from bakeoff.yaml_files import parse_yaml, read_yaml

Split = Literal["train", "dev", "test"]
"""The name of a split."""

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
"""The splits of a task's data."""


class Form(Config):
    """One layout of a data set's files in a folder."""

    train: tuple[str, ...] = Field(min_length=1)
    """Names that the file, or folder, of train may have, also patterns such as `*-ud-train.conllu`; each may be .gz or
    .zst, too."""
    dev: tuple[str, ...] = ()
    """Names that the file of dev may have; empty: dev is held out of train."""
    test: tuple[str, ...] = ()
    """Names that the file of test may have; empty: test is held out of train."""
    settings: dict[str, Any] = Field(default={})
    """Columns, and other values of the task's config with which the files are read."""
    remark: str = ""
    """A note to readers of the results."""

    def names(self, split: Split) -> tuple[str, ...]:
        """The names that the file of a split may have."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]


class HubForm(Config):
    """The layout of a data set on the Hugging Face Hub."""

    repository: str
    """OWNER/NAME, or OWNER/NAME:CONFIG, of a data set with this layout; copies elsewhere may have it, too."""
    splits: dict[Split, str]
    """The Hub's name of each split; a split without one is held out of train."""
    settings: dict[str, Any] = Field(default={})
    """Columns, and other values of the task's config with which the rows are read."""
    remark: str = ""
    """A note to readers of the results."""


class DataSet(Config):
    """A data set whose files and columns are known by its name."""

    title: str
    """The name and the source of the data set."""
    kind: str
    """The kind of its task, such as classification."""
    settings: dict[str, Any] = Field(default={})
    """Values of the task's config in all layouts."""
    forms: tuple[Form, ...] = Field(min_length=1)
    """The layouts that a folder of its files may have; the first that can be read is taken."""
    hub: HubForm | None = None
    """The layout on the Hub; null: it is not there."""


def dataset_names() -> list[str]:
    """The names of the data sets that come with the package."""
    folder = resources.files("bakeoff.tasks.datasets")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def describes_dataset(name_or_path: str) -> bool:
    """Whether a text names a file that describes a data set, and not a data set of the package."""
    return Path(name_or_path).suffix in (".yaml", ".yml")


def load_dataset(name_or_path: str) -> DataSet:
    """The description of a data set.

    Args:
        name_or_path: a name from `dataset_names()`, or a YAML file's path.

    Raises:
        UserError: there is no such data set, or an error in the file, naming file and key.
    """
    if not describes_dataset(name_or_path):
        return _registered(name_or_path)
    path = Path(name_or_path)
    if not path.is_file():
        raise UserError(f"dataset: {path}: no such file")
    return DataSet.parse(read_yaml(path), str(path))


@cache
def _registered(name: str) -> DataSet:
    known = dataset_names()
    if name not in known:
        raise UserError(f"dataset: there is no '{name}'{nearest(name, known)}")
    file = f"{name}.yaml"
    text = resources.files("bakeoff.tasks.datasets").joinpath(file).read_text(encoding="utf-8")
    return DataSet.parse(parse_yaml(text, file), file)
