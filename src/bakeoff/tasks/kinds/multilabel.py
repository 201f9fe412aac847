"""Several labels: any number of labels for a text, or for a pair of texts (as the kinds of toxicity of a comment)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

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
from bakeoff.reading.table_reader import text_value
from bakeoff.tasks.baselines.tfidf import METHOD, regressions_of_labels
from bakeoff.tasks.examples import Example, LeftOut, sides_of
from bakeoff.tasks.reading.labels import ClassNames, label_of, label_text
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.scores.label_scores import LabelCounts, LabelScore, label_scores
from bakeoff.tasks.scores.multilabel_scores import multilabel_contributions, multilabel_scores
from bakeoff.tasks.table_config import TableConfig
from bakeoff.tasks.task import Learned, Task
from bakeoff.tasks.task_config import Metric, TransformersHead

YES_AND_NO = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
"""The words that a cell of a label's own column may hold, in upper or lower case, and their meaning."""


@dataclass(frozen=True)
class TextWithLabels(Example):
    """A text, or a pair of texts, with labels."""

    names: frozenset[str] | None = None
    """The names of the labels; None where they are not known."""

    @property
    @override
    def stratum(self) -> str:
        return ", ".join(sorted(self.names or ()))

    @property
    @override
    def labels(self) -> Sequence[tuple[str, str]]:
        text = " | ".join(self.texts)
        return [(name, text) for name in sorted(self.names or ())]


class LabelsPrediction(Record):
    """A row of test and the prediction for it: a line of predictions.jsonl."""

    label: list[str]
    """The right labels."""
    prediction: list[str]
    """The predicted labels."""
    probabilities: dict[str, float]
    """The probability of every label of the task, predicted or not."""


class LabelNames(Record):
    """The content of labels.json."""

    labels: ClassNames = Field(min_length=1)
    """Names of the labels, in the order of the head's outputs."""


class MultilabelConfig(TableConfig):
    """Texts or pairs of texts, each with any number of labels: .csv, .tsv or .jsonl, plain, .gz or .zst."""

    kind: Literal["multilabel"] = "multilabel"
    """The kind of the task: any number of labels for each text or pair."""
    text_column: str
    """The column with the text."""
    pair_column: str | None = None
    """The column with the second text, for tasks on pairs of texts."""
    label_column: str | list[str]
    """The column with the labels: in .jsonl a list, in other files one text. Or a list of columns, one for each label,
    whose cells say 1 or 0, true or false."""
    between_labels: str = Field(default=",", min_length=1)
    """The characters between two labels where a cell holds all labels as one text."""
    threshold: float = Field(default=0.5, gt=0, lt=1)
    """The least probability at which a label is predicted."""
    metric: Literal["micro_f1", "macro_f1", "exact", "auc"] = "micro_f1"
    """The score on dev that decides which epoch and which learning rate are kept."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "micro_f1": Metric("micro F1"),
        "macro_f1": Metric("macro F1"),
        "exact": Metric("rows all right"),
        "auc": Metric("area under ROC"),
    }
    prints_outputs: ClassVar[str] = (
        'print([dict(zip(config["labels"], row)) for row in (1 / (1 + np.exp(-outputs[0]))).tolist()])  # probabilities'
    )
    simplest: ClassVar[str] = "labels that most of train have"
    has_probabilities: ClassVar[bool] = True
    record: ClassVar[type[Record]] = LabelsPrediction
    reads_windows: ClassVar[bool] = True
    takes_pairs: ClassVar[bool] = True
    exported: ClassVar = TransformersHead(
        "SequenceClassification", "multi_label_classification", {"text_column": "text", "label_column": "labels"}
    )
    reading: ClassVar[frozenset[str]] = TableConfig.reading | {"between_labels"}

    @model_validator(mode="after")
    def _several(self) -> Self:
        if isinstance(self.label_column, list) and len(self.label_column) < 1:
            raise ValueError("label_column: name the column of each label, or the one that holds all of them")
        return self

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column] if self.pair_column is None else [self.text_column, self.pair_column]

    @property
    @override
    def input_sides(self) -> int:
        return len(self.text_columns)

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        return multilabel_contributions(lines, metric)

    @override
    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        """(N,) minus the number of labels that are missing or wrong."""
        return -np.array([len(set(line["label"]) ^ set(line["prediction"])) for line in lines], np.float64)

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[TextWithLabels | LeftOut]:
        named = [self.label_column] if isinstance(self.label_column, str) else self.label_column
        columns = [*self.text_columns, *(named if labelled else [])]
        for record in self.records(path, columns):
            if isinstance(record, LeftOut):
                yield record
                continue
            line, cells = record
            where = f"{path}:{line}"
            texts = tuple(
                text_value(cell, where, name, self.errors) for name, cell in zip(self.text_columns, cells, strict=False)
            )
            label_cells = cells[len(texts) :]
            if labelled and self.broken_rows == "skip" and self._lacks(label_cells):
                yield LeftOut(line, (), "has no label")
                continue
            yield TextWithLabels(line, texts, self._labels(label_cells, where) if labelled else None)

    def _lacks(self, cells: Sequence[Any]) -> bool:
        """Whether labels have columns and a cell of the row is blank in one of these."""
        return isinstance(self.label_column, list) and any(cell is None or not str(cell).strip() for cell in cells)

    def _labels(self, cells: Sequence[Any], where: str) -> frozenset[str]:
        if isinstance(self.label_column, str):
            (cell,) = cells
            values = cell if isinstance(cell, list) else [cell]
            if isinstance(cell, str):
                values = cell.split(self.between_labels)
            there = [each for each in values if each is not None and str(each).strip()]
            return frozenset(label_of(each, where, self.label_column) for each in there)
        labels = set()
        for name, cell in zip(self.label_column, cells, strict=True):
            said = YES_AND_NO.get(str(cell).strip().lower())
            if said is None:
                raise UserError(f"{where}: '{cell}' says neither 1 nor 0 (column '{name}'); write one of them")
            if said:
                labels.add(label_text(name))
        return frozenset(labels)

    @override
    def example(self, texts: Sequence[str]) -> TextWithLabels:
        return TextWithLabels(0, tuple(texts))

    @override
    def learn(self, train: Sequence[TextWithLabels], origin: str) -> "Multilabel":
        labels = {name for each in train for name in each.names or ()}
        if not labels:
            raise UserError(f"{origin}: no row has a label")
        named = set(map(label_text, self.label_column)) if isinstance(self.label_column, list) else labels
        task = Multilabel(self, sorted(named))
        if lacking := sorted(named - labels):
            task.notes = [f"no row of train has {', '.join(lacking)}, so that it cannot be learned"]
        return task

    @override
    def restore(self, labels: Any, where: str) -> "Multilabel":
        return Multilabel(self, list(map(label_text, LabelNames.check({"labels": labels}, where)["labels"])))


class Multilabel(Task):
    """The mean of C binary cross-entropies, one for each label."""

    def __init__(self, config: MultilabelConfig, labels: list[str]) -> None:
        self.config, self.labels, self.metric, self.outputs = config, labels, config.metric, len(labels)

    @property
    @override
    def classes(self) -> list[str]:
        return list(self.labels)

    def table(self, examples: Sequence[TextWithLabels], unseen: Sequence[str] = ()) -> NDArray[np.bool_]:
        """(N, C + U) True where an example has one of the C labels, or one of U others that are `unseen` in train."""
        indices = {name: index for index, name in enumerate([*self.labels, *unseen])}
        table = np.zeros((len(examples), len(indices)), bool)
        for row, each in enumerate(examples):
            table[row, [indices[name] for name in each.names or () if name in indices]] = True
        return table

    def _judged(
        self, examples: Sequence[TextWithLabels], predictions: Sequence[NDArray[np.float32]]
    ) -> tuple[list[str], NDArray[np.bool_], NDArray[np.float32]]:
        """All names, (N, C + U) labels and (N, C + U) probabilities; those of labels that train lacks are 0."""
        unseen, probabilities = sorted(self.unseen(examples)), np.stack(predictions)
        never = np.zeros((len(examples), len(unseen)), probabilities.dtype)
        return [*self.labels, *unseen], self.table(examples, unseen), np.concatenate([probabilities, never], 1)

    @override
    def encode(self, examples: Sequence[TextWithLabels], format: InputFormat) -> Items:
        targets = [
            None if each.names is None else row for each, row in zip(examples, self.table(examples), strict=True)
        ]
        return Items.one_each(format.encode(*sides_of(examples)), targets)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        said = torch.from_numpy(np.stack([items.targets[item] for item in chosen])).to(scores.dtype)
        return F.binary_cross_entropy_with_logits(scores, sent(said, scores.device))

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(C,) log-odds of the labels, for each item."""
        return list(scores.cpu().numpy())

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        said = torch.from_numpy(np.stack(items.targets)).float()
        scores = torch.from_numpy(np.stack(outputs))
        return float(F.binary_cross_entropy_with_logits(scores, said))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[NDArray[np.float32]]:
        """(C,) probabilities of the labels, for each item."""
        return list(items.mean_by_example(list(torch.from_numpy(np.stack(outputs)).sigmoid().numpy())))

    def given(self, prediction: NDArray[np.float32]) -> list[str]:
        """The labels whose probability reaches the threshold."""
        return [name for name, value in zip(self.labels, prediction, strict=True) if value >= self.config.threshold]

    @override
    def score(self, examples: Sequence[TextWithLabels], predictions: Sequence[NDArray[np.float32]]) -> dict[str, float]:
        _, true, probabilities = self._judged(examples, predictions)
        return multilabel_scores(true, probabilities, self.config.threshold)

    @override
    def score_labels(
        self, examples: Sequence[TextWithLabels], predictions: Sequence[NDArray[np.float32]]
    ) -> dict[str, LabelScore]:
        names, true, probabilities = self._judged(examples, predictions)
        predicted = probabilities >= self.config.threshold
        sums = ((true & predicted).sum(0), true.sum(0), predicted.sum(0))
        counts = zip(names, *(each.tolist() for each in sums), strict=True)
        return label_scores({name: LabelCounts(*numbers) for name, *numbers in counts})

    @override
    def simplest(self, train: Sequence[TextWithLabels], test: Sequence[TextWithLabels]) -> dict[str, float]:
        """Scores of always predicting the labels that at least half of the rows of train have."""
        _, true, probabilities = self._judged(test, self._shares(train, test))
        return multilabel_scores(true, probabilities, 0.5)

    @override
    def simplest_lines(self, train: Sequence[TextWithLabels], test: Sequence[TextWithLabels]) -> list[dict[str, Any]]:
        return [self.line(*pair) for pair in zip(test, self._shares(train, test), strict=True)]

    def _shares(self, train: Sequence[TextWithLabels], test: Sequence[TextWithLabels]) -> list[NDArray[np.float32]]:
        """(N,) for each test row the share of the rows of train that have each label."""
        return list(self.table(train).mean(0, keepdims=True).astype(np.float32).repeat(len(test), 0))

    @override
    def baselines(self, train: Sequence[TextWithLabels]) -> Iterator[Learned]:
        """A logistic regression for each label on TF-IDF of words or of characters."""
        for settings, probabilities in regressions_of_labels(train, self.table(train)):

            def predict(examples: Sequence[TextWithLabels], probabilities: Any = probabilities) -> list[Any]:
                return list(probabilities(examples))

            yield Learned(METHOD, settings, predict)

    @override
    def line(self, example: TextWithLabels, prediction: NDArray[np.float32]) -> dict[str, Any]:
        exact = {name: float(f"{value:.9g}") for name, value in zip(self.labels, prediction, strict=True)}  # of float32
        names = sorted(example.names or ())
        return {"label": names, "prediction": self.given(prediction), "probabilities": exact}

    @override
    def as_record(self, example: TextWithLabels, prediction: NDArray[np.float32]) -> dict[str, Any]:
        return {"labels": self.given(prediction), "probabilities": self.probabilities(prediction)}

    @override
    def probabilities(self, prediction: NDArray[np.float32]) -> dict[str, float]:
        return {name: round(float(value), 6) for name, value in zip(self.labels, prediction, strict=True)}

    @override
    def shown(self, example: TextWithLabels, prediction: NDArray[np.float32]) -> tuple[str, ...]:
        return (self.config.between_labels.join(self.given(prediction)),)
