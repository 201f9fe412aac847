"""The contract of a task, which every kind of task keeps, from the rows of a file to scores.

data -> items -> head -> loss -> outputs -> predictions -> scores. A kind is one file in `kinds/` and one line in the
registry; nothing else knows it by its name.

Shapes: R rows of token ids, I items, B rows of a batch, T length, K outputs of the head.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.distributed.processes import Processes
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.tasks.examples import Example
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import HeadedModel, build_head
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.label_scores import LabelScore


class Learned(NamedTuple):
    """A method without a neural network, fitted to train with one choice of its settings."""

    method: str
    """The method in words: the features that it counts, `with`, and the learner."""
    chosen: dict[str, Any]
    """The settings; dev chooses among all settings of a method."""
    predict: Callable[[Sequence[Any]], list[Any]]
    """The method's predictions to examples, in the form of the task."""


class HeadInputs(Protocol):
    """A batch that a head reads."""

    def to(self, device: torch.device) -> Self:
        """The batch on a device."""
        ...


class Predictions(NamedTuple):
    """The predictions to N examples, and their loss."""

    predictions: list[Any]
    """(N,) the predictions, in the order of the examples."""
    loss: float | None
    """The mean loss of the items; None where labels are missing."""


class Task(ABC):
    """A task whose labels are known: how its examples become items, and the head's numbers become predictions."""

    config: Any
    """The config of the task."""
    labels: Any
    """The known labels, as labels.json has them."""
    metric: str
    """The metric by which dev chooses epochs and learning rates."""
    outputs: int
    """K, the number of outputs of the head for each row, or for each token."""
    notes: Sequence[str] = ()
    """Notes to readers of the results on the labels."""

    shows_texts: bool = True
    """Whether a prediction is shown with the example's texts after it."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes; empty where there are none."""
        return []

    @property
    def output_names(self) -> list[str]:
        """Names of the head's K outputs, for exports: those of the classes, if there are any."""
        return self.classes or [f"LABEL_{index}" for index in range(self.outputs)]

    @property
    def output_scale(self) -> tuple[float, float]:
        """The factor a and the shift b with which outputs x are on the scale of the labels, a x + b."""
        return 1.0, 0.0

    @property
    def labels_on_scale(self) -> Any:
        """The labels of a head whose last linear layer has taken over the scale, as exports have it."""
        return self.labels

    def check(self, examples: Sequence[Any], path: Path, origin: str) -> None:  # noqa: B027  most kinds take all
        """Refuse examples whose labels are a slip; none are, unless a kind says otherwise.

        Where a row has several labels, one that no example to learn from has is none: every answer is wrong there.

        Raises:
            UserError: a label that cannot be one of the task's; with its line.
        """

    def unseen(self, examples: Sequence[Example]) -> Counter[str]:
        """How often each label stands in examples that no example to learn from has; every answer is wrong there."""
        known = set(self.classes)
        return Counter(label for each in examples for label, _ in each.labels if known and label not in known)

    def remarks(self, examples: Sequence[Any]) -> Iterator[str]:
        """Remarks on labelled examples that do not depend on a tokenizer."""
        yield from ()

    @abstractmethod
    def encode(self, examples: Sequence[Any], format: InputFormat) -> Items:
        """The items of some examples."""

    def build_head(self, recipe: Recipe, vocabulary: int, config: FinetuneConfig) -> HeadedModel:
        """A head with fresh weights.

        Args:
            recipe: the recipe of its model.
            vocabulary: the size of the tokenizer's vocabulary.
            config: the settings, with the pooling that was decided.
        """
        assert config.pooling != "auto"
        assert self.config.head != "writing"
        return build_head(self.config.head, recipe, vocabulary, self.outputs, config)

    def collate(self, items: Items, chosen: NDArray[np.int64], format: InputFormat) -> HeadInputs:
        """The batch of some items with targets, to be learned from."""
        batch: Row[Tensor] = collate(items.encoded, items.rows(chosen), format)
        return batch

    def predict(
        self,
        head: HeadedModel,
        items: Items,
        format: InputFormat,
        placement: Placement,
        processes: Processes,
        in_training: bool,
    ) -> Predictions | None:
        """Predictions that need more than outputs for each item, such as written texts; None: outputs suffice.

        Args:
            head: the head, in evaluation mode.
            items: the items of the examples.
            format: the format of the rows.
            placement: the device of the head and its precision.
            processes: those that predict together, each with the whole head; all of them get all predictions.
            in_training: whether this is an evaluation on dev in training, which needs no more than the metric.
        """
        return None

    @abstractmethod
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        """The mean loss of some items, to be learned from.

        Args:
            scores: (B, K) or (B, T, K) outputs of the head for the rows of the items.
            items: all items.
            chosen: the indices of the items in the batch.
        """

    def targets(self, items: Items, chosen: NDArray[np.int64]) -> float:
        """The number of targets of some items, of whose losses `loss` is the mean; by default one for each item.

        It weights the losses of micro-batches, so that a batch has one loss however it is cut.
        """
        return float(len(chosen))

    @abstractmethod
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """The part of the head's outputs that is kept for each of some items; arguments as of `loss`."""

    @abstractmethod
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        """The mean loss of all items, for reports."""

    @abstractmethod
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[Any]:
        """The prediction to each example."""

    def resolve(self, examples: Sequence[Any], predictions: Sequence[Any]) -> "Task":
        """The task with what dev decides beside the weights, such as a threshold; `labels` keeps it.

        Every evaluation on dev calls this, and is scored by the resolved task. The call for the weights that are kept
        is the last one, whose result evaluation and prediction use. Most tasks have nothing to resolve.

        Args:
            examples: the examples of dev.
            predictions: the predictions of `decode`, which do not depend on what is resolved.
        """
        return self

    @abstractmethod
    def score(self, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, float]:
        """All metrics of the predictions to labelled examples."""

    def score_labels(self, examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, LabelScore]:
        """The scores of each label, class or type of spans by its name; empty for tasks without these."""
        return {}

    @abstractmethod
    def simplest(self, train: Sequence[Any], test: Sequence[Any]) -> dict[str, float]:
        """All metrics on test of predictions without a model, made from train."""

    def simplest_lines(self, train: Sequence[Any], test: Sequence[Any]) -> list[dict[str, Any]]:
        """These predictions as lines of predictions.jsonl, by which comparisons know the noise; empty: not known."""
        return []

    def baselines(self, train: Sequence[Any]) -> Iterator[Learned]:
        """Methods without a neural network, which a model has to beat as well: each method with each of its settings.

        Cheaper settings of a method stand first, because the first is taken where dev finds two equally good.
        """
        return iter(())

    @abstractmethod
    def line(self, example: Any, prediction: Any) -> dict[str, Any]:
        """A line of predictions.jsonl: the label and the prediction."""

    @abstractmethod
    def as_record(self, example: Any, prediction: Any) -> dict[str, Any]:
        """The prediction to an example as JSON."""

    def probabilities(self, prediction: Any) -> Any:
        """The probability of each answer as JSON; of a task whose config `has_probabilities`."""
        raise NotImplementedError

    @abstractmethod
    def shown(self, example: Any, prediction: Any) -> tuple[str, ...]:
        """The prediction to an example as the cells of a line, without the texts."""
