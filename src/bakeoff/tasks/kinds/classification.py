"""Classification: one of several classes for a text, or for a pair of texts."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.tasks.inputs import InputFormat
from bakeoff.tasks.metrics import score
from bakeoff.tasks.task import Example, Items, LeftOut, Task
from bakeoff.tasks.texts import TextsConfig, sides_of

FEWEST_SCORES = 5
"""So many labels or more that are all numbers are remarked on."""


@dataclass(frozen=True)
class LabelledText(Example):
    """A text, or a pair, and its class."""

    label: str | None = None
    """The name of the class."""

    @property
    @override
    def stratum(self) -> str:
        return self.label or ""


class ClassPrediction(Record):
    """A row of test with what was predicted, as a line of predictions.jsonl."""

    label: str
    """The row's class."""
    prediction: str
    """The class that was predicted."""


class ClassLabels(Record):
    """The content of labels.json."""

    labels: list[str] = Field(min_length=1)
    """Names of the classes, in the order of the head's outputs."""


class ClassAnswer(NamedTuple):
    """The most probable class of an example."""

    place: int
    """Its place in the list of classes."""
    probabilities: NDArray[np.float32]
    """(C,) probability of each class."""


class ClassificationConfig(TextsConfig):
    """Texts or pairs with a class each: .csv, .tsv or .jsonl, each plain, .gz or .zst."""

    kind: Literal["classification"] = "classification"
    """What is learned."""
    metric: Literal["accuracy", "macro_f1", "matthews"] = "accuracy"
    """What epochs and learning rates are chosen by."""

    simplest: ClassVar[str] = "majority class"
    record: ClassVar[type[Record]] = ClassPrediction

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[LabelledText | LeftOut]:
        for row in self.rows(path, labelled):
            yield row if isinstance(row, LeftOut) else LabelledText(*row)

    @override
    def example(self, texts: Sequence[str]) -> LabelledText:
        return LabelledText(0, tuple(texts))

    @override
    def learn(self, train: Sequence[LabelledText], origin: str) -> "Classification":
        classes = sorted({_label_of(each) for each in train})
        if len(classes) < 2:
            raise UserError(f"{origin}: the only label is '{classes[0]}'; at least two classes are needed")
        return Classification(self, classes)

    @override
    def restore(self, labels: Any, where: str) -> "Classification":
        return Classification(self, ClassLabels.check({"labels": labels}, where)["labels"])


class Classification(Task):
    """Cross-entropy over C classes."""

    def __init__(self, config: ClassificationConfig, classes: list[str]) -> None:
        self.config, self.labels, self.metric, self.outputs = config, classes, config.metric, len(classes)
        self.places = {name: place for place, name in enumerate(classes)}
        if _on_a_scale(classes):
            numbers = sorted(map(float, classes))
            self.notes = [
                f"the {len(classes)} labels are numbers from {numbers[0]:g} to {numbers[-1]:g}, and each is a class of "
                "its own: a guess beside the right one counts like any other; if they are a scale, learn them with "
                "--task regression, or group them into few classes"
            ]

    @property
    @override
    def classes(self) -> list[str]:
        names: list[str] = self.labels
        return names

    @override
    def check(self, examples: Sequence[LabelledText], path: Path, origin: str) -> None:
        for each in examples:
            if each.label not in self.places:
                raise UserError(f"{path}:{each.line}: the label '{each.label}' does not occur in {origin}{self._shown}")

    @property
    def _shown(self) -> str:
        """The classes, as far as they fit into a line."""
        more = ", ..." if len(self.classes) > 12 else ""
        return f", which has {', '.join(self.classes[:12])}{more}"

    def places_of(self, examples: Sequence[LabelledText]) -> list[int]:
        """(N,) the place of each label in the list of classes."""
        return [self.places[_label_of(each)] for each in examples]

    def most_frequent(self, examples: Sequence[LabelledText]) -> int:
        """The place of the most frequent class; on a tie the first."""
        counts = Counter(self.places_of(examples))
        return min(counts, key=lambda place: (-counts[place], place))

    @override
    def encode(self, examples: Sequence[LabelledText], format: InputFormat) -> Items:
        encoded = format.encode(*sides_of(examples))
        targets = [None if each.label is None else self.places[each.label] for each in examples]
        return Items.one_each(encoded, targets)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        labels = torch.tensor([items.targets[item] for item in chosen], device=scores.device)
        return F.cross_entropy(scores, labels)

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(C,) log-probabilities of the classes."""
        return list(scores.log_softmax(-1).cpu().numpy())

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        return float(F.nll_loss(torch.from_numpy(np.stack(outputs)), torch.tensor(items.targets)))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[ClassAnswer]:
        probabilities = torch.from_numpy(np.stack(outputs)).exp().numpy()
        places = probabilities.argmax(1)
        return [ClassAnswer(int(place), row) for place, row in zip(places, probabilities, strict=True)]

    @override
    def score(self, examples: Sequence[LabelledText], answers: Sequence[ClassAnswer]) -> dict[str, float]:
        return score(self.places_of(examples), [each.place for each in answers], self.outputs)

    @override
    def simplest(self, train: Sequence[LabelledText], test: Sequence[LabelledText]) -> dict[str, float]:
        """Always the most frequent class of train."""
        return score(self.places_of(test), [self.most_frequent(train)] * len(test), self.outputs)

    @override
    def line(self, example: LabelledText, answer: ClassAnswer) -> dict[str, Any]:
        return {
            "label": example.label,
            "prediction": self.classes[answer.place],
            "probability": round(float(answer.probabilities[answer.place]), 6),
        }

    @override
    def answered(self, example: LabelledText, answer: ClassAnswer) -> dict[str, Any]:
        probability = round(float(answer.probabilities[answer.place]), 6)
        return {"label": self.classes[answer.place], "probability": probability}

    @override
    def shown(self, example: LabelledText, answer: ClassAnswer) -> tuple[str, ...]:
        return self.classes[answer.place], f"{answer.probabilities[answer.place]:.4f}"


def _label_of(example: LabelledText) -> str:
    assert example.label is not None
    return example.label


def _on_a_scale(classes: list[str]) -> bool:
    """Whether the names of classes look like values of a scale: more numbers than categories are numbered, or parts."""
    try:
        numbers = [float(name) for name in classes]
    except ValueError:
        return False
    return all(map(math.isfinite, numbers)) and (
        len(numbers) >= FEWEST_SCORES or any(not number.is_integer() for number in numbers)
    )
