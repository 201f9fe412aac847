"""Classification: one of several classes for a text, or for a pair of texts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor
from typing_extensions import override

from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.machine.transfer import sent
from bakeoff.tasks.baselines.tfidf import METHOD, regressions_of_classes
from bakeoff.tasks.examples import Example, LeftOut, sides_of
from bakeoff.tasks.reading.labels import ClassNames, ClassWeights, LabelName, label_text, on_a_scale
from bakeoff.tasks.reading.probabilities import in_order, probabilities_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.jackknife import Vector, of_classes, of_ratios
from bakeoff.tasks.scores.label_scores import OF_ONE_CLASS, LabelScore, counts_of, label_scores, positive_scores, score
from bakeoff.tasks.table_config import TextsConfig
from bakeoff.tasks.task import Learned, Task
from bakeoff.tasks.task_config import Metric, TransformersHead


@dataclass(frozen=True)
class LabelledText(Example):
    """A text, or a pair of texts, with a class."""

    label: str | None = None
    """The name of the class; None where it is not known."""
    probabilities: Mapping[str, float] | None = None
    """The probability of each class, from which training learns in its place; None: the class alone is known."""

    @property
    @override
    def stratum(self) -> str:
        return self.label or ""


class ClassPrediction(Record):
    """A row of test and the prediction for it: a line of predictions.jsonl."""

    label: str
    """The right class."""
    prediction: str
    """The predicted class."""


class ClassLabels(Record):
    """The content of labels.json."""

    labels: ClassNames = Field(min_length=1)
    """Names of the classes, in the order of the head's outputs."""


class PredictedClass(NamedTuple):
    """The most probable class of an example."""

    class_index: int
    """The index of that class in the list of classes, counted from 0."""
    probabilities: NDArray[np.float32]
    """(C,) probability of each class."""


class ClassificationConfig(TextsConfig):
    """Texts or pairs of texts, each with a class: .csv, .tsv or .jsonl, plain, .gz or .zst."""

    kind: Literal["classification"] = "classification"
    """The kind of the task: one class for each text or pair."""
    metric: Literal["accuracy", "macro_f1", "matthews", "f1"] = "accuracy"
    """The score on dev that decides which epoch and which learning rate are kept."""
    positive: LabelName | None = None
    """A class whose own F1, precision and recall are reported as well, as GLUE does for MRPC and QQP."""
    class_weights: Literal["balanced"] | ClassWeights | None = None
    """The weight of each class in the training loss. balanced: N / (C n) for a class with n of the N rows of train, of
    C classes (King and Zeng 2001); or a mapping from classes to numbers, with 1 for classes that it does not name."""
    probabilities_column: str | None = None
    """The column of train with a probability for each class, `{"good": 0.9, "bad": 0.1}`, from which training learns in
    place of the label; `bakeoff distill` writes it. Scores are of labels."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """The share of the right class's probability that training spreads over all classes (Szegedy et al. 2016)."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "accuracy": Metric("accuracy"),
        "macro_f1": Metric("macro F1"),
        "matthews": Metric("Matthews correlation", "× 100", -1.0),
        "f1": Metric("F1"),
    }
    simplest: ClassVar[str] = "most frequent class"
    one_class: ClassVar[bool] = True
    has_probabilities: ClassVar[bool] = True
    exported: ClassVar = TransformersHead(
        "SequenceClassification", "single_label_classification", {"text_column": "text", "label_column": "label"}
    )
    prints_outputs: ClassVar[str] = 'print([config["labels"][index] for index in outputs[0].argmax(-1)])'
    record: ClassVar[type[Record]] = ClassPrediction

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        labels, predictions = ([line[side] for line in lines] for side in ("label", "prediction"))
        if metric not in OF_ONE_CLASS:
            return of_classes(labels, predictions, metric)
        true, predicted = (np.array([name == self.positive for name in side]) for side in (labels, predictions))
        return of_ratios(*OF_ONE_CLASS[metric](true, predicted))

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[LabelledText | LeftOut]:
        column = self.probabilities_column if labelled and path == self.train else None
        beside: Iterator[Any] = repeat(None) if column is None else self.records(path, [column])
        for row, record in zip(self.rows(path, labelled), beside, strict=False):
            if isinstance(row, LeftOut):
                yield row
            elif column is None or record is None or isinstance(record, LeftOut):
                yield LabelledText(*row)
            else:
                line, (cell,) = record
                yield LabelledText(*row, probabilities_of(cell, f"{path}:{line}", column))

    @override
    def example(self, texts: Sequence[str]) -> LabelledText:
        return LabelledText(0, tuple(texts))

    @override
    def learn(self, train: Sequence[LabelledText], origin: str) -> "Classification":
        classes = sorted({_label_of(each) for each in train}.union(*(each.probabilities or () for each in train)))
        if len(classes) < 2:
            raise UserError(f"{origin}: the only label is '{classes[0]}'; at least two classes are needed")
        named = [self.positive] if self.positive is not None else []
        if isinstance(self.class_weights, dict):
            named += self.class_weights
        for name in named:
            if name not in classes:
                raise UserError(f"{origin}: there is no class '{name}'; there are {', '.join(classes[:12])}")
        counts = Counter(_label_of(each) for each in train)
        return Classification(self, classes, [self._weight(name, counts, len(train)) for name in classes])

    def _weight(self, name: str, counts: Mapping[str, int], rows: int) -> float:
        """The weight of a class in the training loss."""
        if self.class_weights == "balanced":
            return rows / (len(counts) * counts[name])
        return 1.0 if self.class_weights is None else self.class_weights.get(name, 1.0)

    @override
    def restore(self, labels: Any, where: str) -> "Classification":
        return Classification(self, [*map(label_text, ClassLabels.check({"labels": labels}, where)["labels"])])

    @model_validator(mode="after")
    def _f1_of_a_class(self) -> Self:
        if self.metric == "f1" and self.positive is None:
            raise ValueError("metric: f1 is that of one class; name it with positive (or choose macro_f1)")
        if self.probabilities_column is not None and self.class_weights is not None:
            raise ValueError("class_weights: classes are weighed where labels are learned, not probabilities")
        return self


class Classification(Task):
    """Cross-entropy over C classes."""

    def __init__(self, config: ClassificationConfig, classes: list[str], weights: Sequence[float] = ()) -> None:
        self.weights = torch.tensor(weights, dtype=torch.float32) if weights and config.class_weights else None
        self.config, self.labels, self.metric, self.outputs = config, classes, config.metric, len(classes)
        self.indices = {name: index for index, name in enumerate(classes)}
        if on_a_scale(classes):
            numbers = sorted(map(float, classes))
            self.notes = [
                f"the {len(classes)} labels are numbers from {numbers[0]:g} to {numbers[-1]:g}, and each is a class of "
                "its own: a guess beside the right one counts like any other; if they are a scale, learn them with "
                "--task regression, or group them into few classes"
            ]

    @property
    @override
    def classes(self) -> list[str]:
        return list(self.labels)

    @override
    def check(self, examples: Sequence[LabelledText], path: Path, origin: str) -> None:
        for each in examples:
            if each.label not in self.indices:
                raise UserError(f"{path}:{each.line}: the label '{each.label}' does not occur in {origin}{self._shown}")

    @property
    def _shown(self) -> str:
        """The part of an error that names the classes, as many as fit into a line, and says how to mend it."""
        shown = ", ".join(self.classes[:12]) + (", ..." if len(self.classes) > 12 else "")
        return f", which has {shown}; mend it, or leave its rows out by null in label_names"

    def indices_of(self, examples: Sequence[LabelledText]) -> list[int]:
        """(N,) the index of each example's label in the list of classes."""
        return [self.indices[_label_of(each)] for each in examples]

    def most_frequent(self, examples: Sequence[LabelledText]) -> int:
        """The index of the most frequent class in the list of classes; on a tie, the first."""
        counts = Counter(self.indices_of(examples))
        return min(counts, key=lambda index: (-counts[index], index))

    @override
    def encode(self, examples: Sequence[LabelledText], format: InputFormat) -> Items:
        targets = [self._target(each) for each in examples]
        return Items.one_each(format.encode(*sides_of(examples)), targets)

    def _target(self, example: LabelledText) -> int | NDArray[np.float32] | None:
        """The index of an example's class, or the probabilities of all classes; None: neither is known."""
        if example.probabilities is not None:
            return in_order(example.probabilities, self.labels)
        return None if example.label is None else self.indices[example.label]

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        labels = sent(torch.from_numpy(np.array([items.targets[item] for item in chosen])), scores.device)
        weights = None if self.weights is None else sent(self.weights, scores.device)
        return F.cross_entropy(scores, labels, weights, label_smoothing=self.config.label_smoothing)

    @override
    def targets(self, items: Items, chosen: NDArray[np.int64]) -> float:
        if self.weights is None:
            return super().targets(items, chosen)
        return float(self.weights[[items.targets[item] for item in chosen]].sum())

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(C,) log-probabilities of the classes, for each item."""
        return list(scores.log_softmax(-1).cpu().numpy())

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        values, targets = torch.from_numpy(np.stack(outputs)), torch.from_numpy(np.array(items.targets))
        return float(F.nll_loss(values, targets) if targets.dim() == 1 else F.cross_entropy(values, targets))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[PredictedClass]:
        probabilities = items.mean_by_example([np.exp(output) for output in outputs])
        indices = probabilities.argmax(1)
        return [PredictedClass(int(index), row) for index, row in zip(indices, probabilities, strict=True)]

    @override
    def score(self, examples: Sequence[LabelledText], predictions: Sequence[PredictedClass]) -> dict[str, float]:
        return self._score(self.indices_of(examples), [each.class_index for each in predictions])

    @override
    def score_labels(
        self, examples: Sequence[LabelledText], predictions: Sequence[PredictedClass]
    ) -> dict[str, LabelScore]:
        predicted = [self.classes[each.class_index] for each in predictions]
        return label_scores(counts_of([_label_of(each) for each in examples], predicted, self.classes))

    def _score(self, labels: list[int], predictions: list[int]) -> dict[str, float]:
        positive = self.config.positive
        of_positive = {} if positive is None else positive_scores(labels, predictions, self.indices[positive])
        return {**score(labels, predictions, self.outputs), **of_positive}

    @override
    def simplest(self, train: Sequence[LabelledText], test: Sequence[LabelledText]) -> dict[str, float]:
        """Scores of always predicting the most frequent class of train."""
        return self._score(self.indices_of(test), [self.most_frequent(train)] * len(test))

    @override
    def simplest_lines(self, train: Sequence[LabelledText], test: Sequence[LabelledText]) -> list[dict[str, Any]]:
        always = self.classes[self.most_frequent(train)]
        return [{"label": each.label, "prediction": always} for each in test]

    @override
    def baselines(self, train: Sequence[LabelledText]) -> Iterator[Learned]:
        """Logistic regressions on TF-IDF of words or of characters, from strong to weak regularisation."""
        fitted = False
        for settings, predicted in regressions_of_classes(train, self.indices_of(train), self.outputs):

            def predict(examples: Sequence[LabelledText], predicted: Any = predicted) -> list[PredictedClass]:
                return [PredictedClass(int(row.argmax()), row.astype(np.float32)) for row in predicted(examples)]

            fitted = True
            yield Learned(METHOD, settings, predict)
        if not fitted:  # no text has a word or a character, or there is a single class
            always = self.most_frequent(train)
            certain = np.eye(self.outputs, dtype=np.float32)[always]
            yield Learned(
                METHOD, {"features": "none"}, lambda examples: [PredictedClass(always, certain)] * len(examples)
            )

    @override
    def line(self, example: LabelledText, prediction: PredictedClass) -> dict[str, Any]:
        said = self.as_record(example, prediction)
        return {"label": example.label, "prediction": said["label"], "probability": said["probability"]}

    @override
    def as_record(self, example: LabelledText, prediction: PredictedClass) -> dict[str, Any]:
        probability = round(float(prediction.probabilities[prediction.class_index]), 6)
        return {"label": self.classes[prediction.class_index], "probability": probability}

    @override
    def probabilities(self, prediction: PredictedClass) -> dict[str, float]:
        each = zip(self.classes, prediction.probabilities, strict=True)
        return {name: round(float(value), 6) for name, value in each}

    @override
    def shown(self, example: LabelledText, prediction: PredictedClass) -> tuple[str, ...]:
        return self.classes[prediction.class_index], f"{prediction.probabilities[prediction.class_index]:.4f}"


def _label_of(example: LabelledText) -> str:
    assert example.label is not None
    return example.label
