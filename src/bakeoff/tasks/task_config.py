"""The config of a task: its files, what is held out of them, and what is known of its kind before any file is read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from bakeoff.config import Config, Record
from bakeoff.recipe import Recipe
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task import Task


class Metric(NamedTuple):
    """How the values of a metric are shown."""

    title: str
    """The metric's name in words."""
    unit: Literal["%", "× 100", ""] = "%"
    """The unit of shown values: percent; values times 100, as for correlations; or none, for any other scale."""


class TaskConfig(Config):
    """Which files hold a task; each kind says what their columns mean."""

    kind: str
    """The kind of the task, such as classification or tagging."""
    name: str = ""
    """The task's name in results; absent: its kind."""
    train: Path
    """File of labelled rows to learn from."""
    dev: Path | None = None
    """File on which epochs and learning rates are chosen; absent: a share of train is held out."""
    test: Path | None = None
    """File that every reported number comes from; absent: a share of train is held out."""
    train_rows: int | None = Field(default=None, gt=0)
    """Learn from the first so many rows of train only; what is held out as dev and test is cut off before."""
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    """The share of train that is held out as dev where there is no dev file."""
    test_share: float = Field(default=0.2, gt=0, lt=1)
    """The share of train that is held out as test where there is no test file."""
    split_seed: int = Field(default=0, ge=0)
    """Seed of what is held out. It is the task's own, so that all models and seeds are tested on the same rows."""
    errors: Literal["strict", "replace"] = "strict"
    """Invalid UTF-8 is an error, or is replaced by U+FFFD."""
    encoding: Literal["utf-8", "latin-1", "windows-1252", "gb18030"] = "utf-8"
    """The encoding of files of lines; UTF-16 is known by its byte order mark."""
    remark: str = ""
    """What a reader of the results must know of the files; it stands among the notes."""

    sides: ClassVar[int | None] = 1
    """Texts of an example where all have as many; None: they differ."""
    head: ClassVar[Literal["row", "tokens", "writing"]] = "row"
    """The head gives numbers for each row, or for each of its tokens; or it is the one with which the model has learnt
    to write, which the kind builds itself."""
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    """Metrics of which less is better."""
    one_class: ClassVar[bool] = False
    """Each example has one of several classes, which the softmax of the head's numbers for its row predicts."""
    reads_windows: ClassVar[bool] = False
    """A text that is too long can be read in windows, whose answers are averaged."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """How its metrics are shown; what is missing here has its key for a name."""
    reading: ClassVar[frozenset[str]] = frozenset({"errors", "encoding"})
    """Keys, beside those of columns, that say how a file is read, and not what is learned from it."""
    simplest: ClassVar[str]
    """What answers without a model, to which results are compared."""
    record: ClassVar[type[Record]]
    """A line of predictions.jsonl."""

    @property
    def title(self) -> str:
        """The name in results."""
        return self.name or self.kind

    @property
    def input_sides(self) -> int | None:
        """Texts of an example of these files; None: they differ."""
        return self.sides

    @property
    def text_columns(self) -> list[str]:
        """The columns with an example's texts, in their order, of a file of texts to be answered."""
        return ["text"]

    def reads_files(self, path: Path, column: str | None = None) -> bool:
        """Whether a file of examples to be answered has the format of the task's own, and not texts or columns.

        Args:
            path: the file.
            column: what the user calls the column of its texts, or words; None: nothing is said.
        """
        return self.sides is None

    def reads_its_form(self, path: Path) -> bool:
        """Whether a file of texts has columns that the task's files have too, in a form that no name of a file says."""
        return False

    def blank_texts(self, example: Any) -> int:
        """How many texts of an example are blank that should not be."""
        return sum(not text.strip() for text in example.texts)

    @classmethod
    def described(cls, metric: str) -> Metric:
        """How a metric is shown: where nothing else is said, as it is if less is better, and else in percent."""
        unit: Literal["%", ""] = "" if metric in cls.lower_is_better else "%"
        return cls.metrics.get(metric, Metric(metric.replace("_", " "), unit))

    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector | None:
        """What each test example contributes to a metric, from which comparisons estimate the noise of the test set.

        Args:
            lines: (N,) the lines of predictions.jsonl.
            metric: one of the task's metrics.

        Returns:
            (N,) values whose mean is the metric where it is a mean over examples, and else the jackknife's
            pseudo-values (`bakeoff.tasks.scores.jackknife`); None where that is not known, and nothing can be claimed.
        """
        return None

    def require_model(self, recipe: Recipe) -> None:
        """Refuse models that cannot learn such a task.

        Raises:
            UserError: this one cannot.
        """

    def read(self, path: Path, labelled: bool = True) -> Iterator[Any]:
        """The examples of a file.

        Args:
            path: the file.
            labelled: it says what is to be predicted; a row that is not to be used comes as a `LeftOut`.

        Raises:
            UserError: there is no such file or column, or a mistake in it; with its line.
        """
        raise NotImplementedError

    def example(self, texts: Sequence[str]) -> Any:
        """An unlabelled example of these texts."""
        raise NotImplementedError

    def learn(self, train: Sequence[Any], origin: str) -> "Task":
        """The task, with what is known of its labels from the examples to learn from.

        Args:
            train: the examples.
            origin: what errors call them.

        Raises:
            UserError: nothing can be learned from them.
        """
        raise NotImplementedError

    def restore(self, labels: Any, where: str) -> "Task":
        """The task, with what is known of its labels from `labels.json`.

        Raises:
            UserError: it does not hold that.
        """
        raise NotImplementedError
