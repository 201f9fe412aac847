"""What a task is: the contract that every kind of task keeps, from the rows of a file to scores.

data -> items -> head -> loss -> outputs -> predictions -> scores. A kind is one file in `kinds/` and one line in the
registry; nothing else knows it by its name.

Shapes: R rows of token ids, I items, B rows of a batch, T length, K outputs of the head.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import HeadedModel, build_head
from bakeoff.tasks.items import Items
from bakeoff.tasks.rows.batches import InputBatch, collate
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.scores.label_scores import LabelScore


class Learned(NamedTuple):
    """What learns from train without a neural network, fitted with one choice of its settings."""

    method: str
    """The method in words: the features that it counts, `with`, and the learner."""
    chosen: dict[str, Any]
    """The settings, of which dev chooses among those of one method."""
    score: Callable[[Sequence[Any]], dict[str, float]]
    """All metrics of its answers to labelled examples."""


class HeadInputs(Protocol):
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
    """The task's config."""
    labels: Any
    """What is known of the labels, as JSON has it."""
    metric: str
    """The metric by which dev chooses epochs and learning rates."""
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

    def remarks(self, examples: Sequence[Any]) -> Iterator[str]:
        """What a reader must know of labelled examples, whatever a tokenizer makes of them."""
        yield from ()

    @abstractmethod
    def encode(self, examples: Sequence[Any], format: InputFormat) -> Items:
        """The items of some examples."""

    def build_head(self, recipe: Recipe, vocabulary: int, config: FinetuneConfig) -> HeadedModel:
        """A fresh head.

        Args:
            recipe: that of its model.
            vocabulary: the tokenizer's.
            config: with the pooling that was decided.
        """
        assert config.pooling != "auto"
        assert self.config.head != "writing"
        return build_head(self.config.head, recipe, vocabulary, self.outputs, config)

    def collate(self, items: Items, chosen: NDArray[np.int64], format: InputFormat) -> HeadInputs:
        """What the head reads of some items to be learned from."""
        batch: InputBatch = collate(items.encoded, items.rows(chosen), format)
        return batch

    def own_answers(
        self, head: HeadedModel, items: Items, format: InputFormat, placement: Placement, look: bool
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

    def resolve(self, examples: Sequence[Any], answers: Sequence[Any]) -> "Task":
        """The task with what dev decides beside the weights, such as a threshold, which its labels keep.

        Every look at dev calls this, and is scored by the resolved task. The call for the weights that are kept is the
        last one, whose result evaluation and prediction use. Most tasks have nothing to resolve.

        Args:
            examples: those of dev.
            answers: what `decode` makes of them; they do not depend on what is resolved.
        """
        return self

    @abstractmethod
    def score(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        """All metrics of the answers to labelled examples."""

    def score_labels(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, LabelScore]:
        """How well each label, class or type of spans is found; empty for tasks without these."""
        return {}

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
