"""What a task is: the contract that every kind of task keeps, from the rows of a file to scores.

data -> items -> head -> loss -> outputs -> predictions -> scores. A kind is one file in `kinds/` and one line in the
registry; nothing else knows it by its name.

Shapes: R rows of token ids, I items, B rows of a batch, T length, K outputs of the head.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from bakeoff.config import Config, Record
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import Head, build_head
from bakeoff.tasks.rows.batches import InputBatch, collate
from bakeoff.tasks.rows.inputs import EncodedRows, InputFormat
from bakeoff.tasks.scores.jackknife import Vector


@dataclass(frozen=True)
class Example:
    """What one row of a file holds; kinds add what is to be predicted, None where the file does not say it."""

    line: int
    """The line of the file on which it ends."""
    texts: tuple[str, ...]
    """All that is read of it: the same texts in two parts of the data are no test."""

    @property
    def stratum(self) -> str:
        """What is held out of train has its share of each of these: the class, where there are classes."""
        return ""

    @property
    def together(self) -> tuple[str, ...]:
        """Rows of which this is the same stay together where a part is held out: the texts, or what all are about."""
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


@dataclass(frozen=True)
class Items:
    """Examples as rows of token ids, in the units that stand in a batch together.

    An item has one row, or several that are compared with each other; an example has one item, or several windows.
    """

    encoded: EncodedRows
    """R rows, those of an item one behind the other."""
    bounds: NDArray[np.int64]
    """(I + 1,) where the rows of each item begin and end."""
    owners: NDArray[np.int64]
    """(I,) the example of each item, in rising order."""
    targets: Sequence[Any]
    """What the loss compares each item with, as its kind has it; None of an item whose file does not say it."""
    notes: Sequence[str] = ()
    """What a reader of the results must know of how examples became items: what was cut, or could not be learned."""

    @classmethod
    def one_each(cls, encoded: EncodedRows, targets: Sequence[Any]) -> "Items":
        """Examples with a row each, or with one for each window of their text, which is then asked the same."""
        count = len(encoded.ids)
        owners = np.arange(count) if encoded.owners is None else encoded.owners
        return cls(encoded, np.arange(count + 1), owners, [targets[owner] for owner in owners])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(I,) tokens of each item, over all of its rows."""
        return np.diff(np.concatenate([[0], np.cumsum(self.encoded.lengths)])[self.bounds])

    def mean_by_example(self, outputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """(N, ...) the means over the items of each of N examples."""
        stacked = np.stack(outputs)
        begins = np.flatnonzero(np.diff(self.owners, prepend=-1))
        counts = np.diff([*begins, len(self.owners)]).reshape(-1, *[1] * (stacked.ndim - 1))
        return (np.add.reduceat(stacked, begins) / counts).astype(np.float32)

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B,) the rows of some items, those of an item one behind the other."""
        return np.concatenate([np.arange(self.bounds[item], self.bounds[item + 1]) for item in chosen])


class Metric(NamedTuple):
    """How the values of a metric are shown."""

    title: str
    """Its name in words."""
    unit: Literal["%", "× 100", ""] = "%"
    """In percent; times 100, as correlations are shown; or as they are, on a scale of their own."""


class Learned(NamedTuple):
    """What learns from train without a neural network, fitted with one choice of its settings."""

    method: str
    """What it is, in words: what it counts, and `with` what learns from that."""
    chosen: dict[str, Any]
    """The settings, of which dev chooses among those of one method."""
    score: Callable[[Sequence[Any]], dict[str, float]]
    """All metrics of its answers to labelled examples."""


class TaskConfig(Config):
    """Which files hold a task; each kind says what their columns mean."""

    kind: str
    """What is learned."""
    name: str = ""
    """The task's name in results; absent: its kind."""
    train: Path
    """File of labelled rows to learn from."""
    dev: Path | None = None
    """File on which epochs and learning rates are chosen; absent: a part of train is held out."""
    test: Path | None = None
    """File that every reported number comes from; absent: a part of train is held out."""
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
    """Of each example one of several classes is predicted, by the softmax of the head's numbers for its row."""
    reads_windows: ClassVar[bool] = False
    """A text that is too long can be read in windows, whose answers are averaged."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """How its metrics are shown; what is missing here has its key for a name."""
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

    def reads_files(self, path: Path) -> bool:
        """Whether a file of examples to be answered has the format of the task's own, and not texts or columns."""
        return self.sides is None

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
            labelled: it says what is to be predicted; of a row that is not to be used there is a `LeftOut`.

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


class Batch(Protocol):
    """What a head reads."""

    def to(self, device: torch.device) -> Self:
        """The batch on a device."""
        ...


class Answers(NamedTuple):
    """What a task makes of what a head says of N examples."""

    answers: list[Any]
    """(N,) the answers, in the order of the examples."""
    loss: float | None
    """Mean loss of the items, where all have labels."""


class Task(ABC):
    """A task whose labels are known: how its examples become items, and the head's numbers become answers."""

    config: Any
    """Its config."""
    labels: Any
    """What is known of the labels, as JSON has it."""
    metric: str
    """What epochs and learning rates are chosen by."""
    outputs: int
    """K, numbers that the head gives for each row, or token."""
    notes: Sequence[str] = ()
    """What a reader of the results must know of the labels."""

    shows_texts: bool = True
    """An answer is shown with the example's texts behind it."""

    @property
    def classes(self) -> list[str]:
        """Names of what is told apart; none where there are no classes."""
        return []

    @abstractmethod
    def check(self, examples: Sequence[Any], path: Path, origin: str) -> None:
        """Refuse labels that cannot be answered.

        Raises:
            UserError: a label that the examples to learn from do not have; with its line.
        """

    @abstractmethod
    def encode(self, examples: Sequence[Any], format: InputFormat) -> Items:
        """The items of some examples."""

    def build_head(self, recipe: Recipe, vocabulary: int, config: FinetuneConfig) -> Head:
        """A fresh head.

        Args:
            recipe: that of its model.
            vocabulary: the tokenizer's.
            config: with the pooling that was decided.
        """
        assert config.pooling != "auto"
        assert self.config.head != "writing"
        return build_head(self.config.head, recipe, vocabulary, self.outputs, config)

    def collate(self, items: Items, chosen: NDArray[np.int64], format: InputFormat) -> Batch:
        """What the head reads of some items to be learned from."""
        batch: InputBatch = collate(items.encoded, items.rows(chosen), format)
        return batch

    def own_answers(
        self, head: Head, items: Items, format: InputFormat, placement: Placement, look: bool
    ) -> Answers | None:
        """Answers that are not made of a head's numbers for each item, as texts that it writes; None: they are.

        Args:
            head: in evaluation mode.
            items: what is asked.
            format: the rows' format.
            placement: where the head is.
            look: a look at dev in training, which needs no more than the metric.
        """
        return None

    @abstractmethod
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        """The mean loss of some items, to be learned from.

        Args:
            scores: (B, K) or (B, T, K) what the head gives for the items' rows.
            items: all items.
            chosen: which of them.
        """

    @abstractmethod
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """What is kept of the head's numbers for each of some items; arguments as of `loss`."""

    @abstractmethod
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        """The mean loss of all items, to be looked at."""

    @abstractmethod
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[Any]:
        """The answer to each example."""

    def settle(self, examples: Sequence[Any], answers: Sequence[Any]) -> "Task":
        """The task with what dev decides beside the weights, such as a threshold, which its labels keep.

        It is asked at every look at dev, which is scored by what it settles, and once more for the weights that are
        kept; evaluation and prediction use what was settled then. Most tasks have nothing to settle.

        Args:
            examples: those of dev.
            answers: what `decode` makes of them; they do not depend on what is settled.
        """
        return self

    @abstractmethod
    def score(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        """All metrics of the answers to labelled examples."""

    @abstractmethod
    def simplest(self, train: Sequence[Any], test: Sequence[Any]) -> dict[str, float]:
        """All metrics of answers without a model."""

    def floors(self, train: Sequence[Any]) -> Iterator[Learned]:
        """What learns without a neural network, and has to be beaten as well: each method with each of its settings.

        What costs less stands first, for it is taken where dev finds two alike.
        """
        return iter(())

    @abstractmethod
    def line(self, example: Any, answer: Any) -> dict[str, Any]:
        """A line of predictions.jsonl: the label and what was predicted."""

    @abstractmethod
    def answered(self, example: Any, answer: Any) -> dict[str, Any]:
        """An answer as JSON."""

    @abstractmethod
    def shown(self, example: Any, answer: Any) -> tuple[str, ...]:
        """An answer as the cells of a line, without the texts."""
