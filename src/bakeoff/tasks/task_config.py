"""The config of a task: its files, the splits held out of them, and properties of its kind."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field

from bakeoff.config import Config, Record
from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.plugins import take_parts
from bakeoff.reading.files import TEXT, kind_of
from bakeoff.recipe import Recipe
from bakeoff.registry import Registry
from bakeoff.tasks.reading.tables import TableForm
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.task import Task


class Metric(NamedTuple):
    """The name and the unit with which a metric is shown, and its bounds."""

    title: str
    """The name of the metric in words."""
    unit: Literal["%", "× 100", ""] = "%"
    """The unit of shown values: percent; values times 100, as for correlations; or none, for any other scale."""
    lowest: float = 0.0
    """The lowest value that it may have; with a unit, the highest is 1."""


HeadClass = Literal["SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice"]
"""The ends of the names of transformers' classes with a task head, after `For`."""


class TransformersHead(NamedTuple):
    """The head that transformers has for a kind of task.

    SequenceClassification gives K numbers for a row, TokenClassification K for each token, QuestionAnswering the
    log-odds of each token as the beginning and as the end of an answer, MultipleChoice one number for each choice.
    """

    ending: HeadClass
    """The end of the name of the class."""
    problem_type: Literal["single_label_classification", "multi_label_classification", "regression"] | None = None
    """What the numbers of SequenceClassification mean, for transformers' own training; None: nothing that it knows."""
    columns: Mapping[str, str] | None = None
    """Columns of a task's file where a model was fine-tuned elsewhere, beside those with a default; None: such models
    are of another kind."""
    remark: str = ""
    """A sentence on what transformers' pipeline does otherwise."""


class GeneratedTexts(NamedTuple):
    """How a head that writes does so, for exports."""

    longest: int | None = None
    """The most tokens of a prediction; None: as many as the model can write."""
    prefix: str = ""
    """The text before each source, with a space between them; empty: none."""
    beams: int = 1
    """The number of beams that predictions are searched with; 1: the likeliest token each time."""


class TaskConfig(Config):
    """The files of a task, and how they are split; each kind adds the columns."""

    kind: str
    """The kind of the task, such as classification or tagging."""
    name: str = ""
    """The name of the task in results; absent: its kind."""
    train: Path
    """File of labelled rows to learn from."""
    dev: Path | None = None
    """File on which epochs and learning rates are chosen; absent: a share of train is held out."""
    test: Path | None = None
    """File that every reported number comes from; absent: a share of train is held out."""
    train_rows: int | None = Field(default=None, gt=0)
    """The number of rows of train to learn from, after dev and test are held out; `split_seed` chooses them, of every
    class its share and of every label one at least, if they suffice. Which labels there are says the whole of train,
    and a larger number has the rows of a smaller one. Absent: all."""
    dev_share: float = Field(default=0.1, gt=0, lt=1)
    """The share of train that is held out as dev where there is no dev file."""
    test_share: float = Field(default=0.2, gt=0, lt=1)
    """The share of train that is held out as test where there is no test file."""
    split_seed: int = Field(default=0, ge=0)
    """The seed of held-out splits and of `train_rows`. It belongs to the task, so that all models and seeds have the
    same rows."""
    cluster_column: str | None = None
    """The column that says which rows belong together, such as the article of a question or the speaker of a sentence.
    A comparison counts these as one when it says how much chance is in the test rows, and no split parts them. Absent:
    rows with equal texts, questions on one article or context, and sentences of a document that the file marks."""
    errors: Literal["strict", "replace"] = "strict"
    """Invalid UTF-8 is an error, or is replaced by U+FFFD."""
    encoding: Literal["utf-8", "latin-1", "windows-1252", "gb18030"] = "utf-8"
    """The encoding of files of lines; UTF-16 is known by its byte order mark."""
    remark: str = ""
    """A note on the files to readers of the results; it stands among the notes."""

    sides: ClassVar[int | None] = 1
    """The number of texts of an example; None where it differs."""
    head: ClassVar[Literal["row", "tokens", "writing"]] = "row"
    """The head: of outputs for each row, or for each token; or the head with which the model has learnt to write, which
    the kind builds itself."""
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    """Metrics of which lower values are better."""
    one_class: ClassVar[bool] = False
    """Whether each example has one of several classes, predicted by a softmax of the head's outputs for its row."""
    has_probabilities: ClassVar[bool] = False
    """Whether a prediction has a probability for each of several answers: classes, labels or choices."""
    reads_windows: ClassVar[bool] = False
    """Whether a text that is too long can be read in windows, whose predictions are averaged."""
    takes_pairs: ClassVar[bool] = False
    """Whether an example is one text or a pair of texts, as `pair_column` says."""
    exported: ClassVar[TransformersHead | None] = None
    """The head of transformers for such a task; None: transformers has none, and the task is exported as ONNX alone."""
    prints_outputs: ClassVar[str] = "print(outputs[0])"
    """A line of Python in the README of an ONNX export that shows what `outputs`, arrays of B rows, say; `config` is
    the export's config.json."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Names and units of the metrics; a metric that is missing here has its key as its name."""
    reading: ClassVar[frozenset[str]] = frozenset({"errors", "encoding"})
    """Keys, beside the keys of columns, that say how a file is read and change nothing of what is learned."""
    blank_unit: ClassVar[str] = "text"
    """What an example has several of and none of which should be blank, as remarks call it: text, or word."""
    simplest: ClassVar[str]
    """The predictions without a model, in words, with which results are compared."""
    record: ClassVar[type[Record]]
    """The record of a line of predictions.jsonl."""

    @property
    def title(self) -> str:
        """The name of the task in results: `name`, or else the kind."""
        return self.name or self.kind

    @property
    def input_sides(self) -> int | None:
        """The number of texts of an example in these files; None where it differs."""
        return self.sides

    @property
    def text_columns(self) -> list[str]:
        """The columns with an example's texts, in their order, in a file of texts to be predicted."""
        return ["text"]

    @property
    def written(self) -> GeneratedTexts:
        """The limit of the predictions, and the prefix of the sources, of a head that writes."""
        return GeneratedTexts()

    def reads_files(self, path: Path, column: str | None = None) -> bool:
        """Whether a file to be predicted is in the format of the task's files, rather than texts or columns of texts.

        Args:
            path: the file.
            column: the column of its texts, or words, as the user names it; None: the user names none.
        """
        return self.sides is None

    def reads_its_form(self, path: Path) -> bool:
        """Whether a file of texts is a table to be read with the settings of the task's files, not by its name."""
        return False

    def has_rows(self, path: Path, column: str | None = None) -> bool:
        """Whether a file to be predicted has a row with columns for each example; arguments as of `reads_files`."""
        return kind_of(path) not in (None, TEXT)

    @property
    def form(self) -> TableForm:
        """The form in which files with columns are read."""
        return TableForm(self.errors, self.encoding)

    def blank_texts(self, example: Any) -> int:
        """The number of texts of an example that are blank and should not be."""
        return sum(not text.strip() for text in example.texts)

    @classmethod
    def described(cls, metric: str) -> Metric:
        """The name and unit of a metric; by default no unit if lower is better, else percent."""
        unit: Literal["%", ""] = "" if metric in cls.lower_is_better else "%"
        return cls.metrics.get(metric, Metric(metric.replace("_", " "), unit))

    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector | None:
        """The contribution of each test example to a metric, from which comparisons estimate the noise of the test set.

        Args:
            lines: (N,) the lines of predictions.jsonl.
            metric: one of the task's metrics.

        Returns:
            (N,) values whose mean is the metric: those that it is the mean of, and else the jackknife's pseudo-values
            (`bakeoff.tasks.scores.jackknife`); None where they are not known, and nothing can be claimed.
        """
        return None

    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        """How near each answer is to the right one, whatever the other answers are; a report shows rows by it.

        Args:
            lines: (N,) the lines of predictions.jsonl.
            metric: one of the task's metrics.

        Returns:
            (N,) values, of which more is better; by default 1 where an answer is the right one, and 0.
        """
        return np.array([line.get("prediction") == line.get("label") for line in lines], np.float64)

    def require_model(self, recipe: Recipe) -> None:
        """Refuse a model that cannot learn such a task.

        Raises:
            UserError: the model of the recipe cannot.
        """

    def read(self, path: Path, labelled: bool = True) -> Iterator[Any]:
        """The examples of a file.

        Args:
            path: the file.
            labelled: whether the file has labels; rows that are not to be used then come as a `LeftOut`.

        Raises:
            UserError: there is no such file or column, or a mistake in it; with its line.
        """
        raise NotImplementedError

    def example(self, texts: Sequence[str]) -> Any:
        """An example of these texts, without a label."""
        raise NotImplementedError

    def read_otherwise(self, settings: Mapping[str, Any]) -> Self:
        """The task, set to read a file with other columns, or of another form, than the files of fine-tuning.

        Args:
            settings: columns and other settings of how a file is read, by their keys.

        Raises:
            UserError: there is no such key, or fine-tuning has decided it; a mistake in a value; or a model that has
                learned single texts would read pairs, or the other way round.
        """
        known = type(self).model_fields
        able = [key for key in known if key in self.reading or key.endswith("_column")]
        for key in settings:
            if key not in able:
                reason = "was decided in fine-tuning" if key in known else f"is nothing that a task of {self.kind} has"
                raise UserError(f"{key}: {reason}; how a file is read is said by {listed(able, 'and')}")
        changed = self.parse({**self.model_dump(), **settings}, "settings of the file")
        if changed.input_sides != self.input_sides:
            learned = "single texts" if self.input_sides == 1 else "pairs of texts"
            raise UserError(f"pair_column: the run has learned from {learned}, and reads nothing else")
        return changed

    def settled(self, train: Sequence[Any]) -> Self:
        """The task with what the labels of train decide about the reading of the other files."""
        return self

    @classmethod
    def labels_of(cls, names: Sequence[str]) -> Any:
        """The content of labels.json for a head that was fine-tuned elsewhere, from the names of its outputs."""
        return list(names)

    def learn(self, train: Sequence[Any], origin: str) -> "Task":
        """The task with its known labels, from the examples to learn from.

        Args:
            train: the examples.
            origin: the name of the examples in errors.

        Raises:
            UserError: nothing can be learned from the examples.
        """
        raise NotImplementedError

    def restore(self, labels: Any, where: str) -> "Task":
        """The task with its known labels, from the content of `labels.json`.

        Args:
            labels: the content.
            where: the name of the file in errors.

        Raises:
            UserError: the content is not that of a task of this kind.
        """
        raise NotImplementedError


TASKS: Registry[TaskConfig] = Registry("kind of task", TaskConfig)
"""The config of every kind of task by its name; `bakeoff.tasks.registry` has those of Bakeoff."""
take_parts(TASKS)
