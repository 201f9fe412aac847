"""Regression: a number for a text, or for a pair of texts (as the similarity of two sentences in STS-B)."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.machine.transfer import sent
from bakeoff.tasks.baselines.tfidf import counted
from bakeoff.tasks.examples import Example, LeftOut, sides_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.jackknife import Vector, of_pearson, of_spearman
from bakeoff.tasks.table_config import TextsConfig
from bakeoff.tasks.task import Learned, Task
from bakeoff.tasks.task_config import Metric, TransformersHead

REGULARISATION = (100.0, 10.0, 1.0, 0.1)
"""The values of alpha to try in ridge regression, from the simplest model on."""
ON_SCALE = {"mean": 0.0, "deviation": 1.0}
"""The labels of a head whose outputs are on the scale of the numbers already."""
_LARGEST = 1e100
"""The largest number that is read, so that the squares of numbers are finite."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class RatedText(Example):
    """A text, or a pair of texts, with a number."""

    value: float | None = None
    """The number, on the scale of the file; None where it is not known."""


class RegressionPrediction(Record):
    """A row of test and the prediction for it: a line of predictions.jsonl."""

    label: float
    """The right number."""
    prediction: float
    """The predicted number."""


class Scale(Record):
    """The content of labels.json."""

    mean: float
    """The mean of the numbers of train."""
    deviation: float = Field(gt=0)
    """The standard deviation of the numbers of train."""


class RegressionConfig(TextsConfig):
    """Texts or pairs of texts, each with a number: .csv, .tsv or .jsonl, plain, .gz or .zst."""

    kind: Literal["regression"] = "regression"
    """The kind of the task: a number for each text or pair."""
    metric: Literal["spearman", "pearson", "mean_absolute_error"] = "spearman"
    """The score on dev that decides which epoch and which learning rate are kept."""

    lower_is_better: ClassVar[frozenset[str]] = frozenset({"mean_absolute_error"})
    metrics: ClassVar[Mapping[str, Metric]] = {
        "spearman": Metric("Spearman correlation", "× 100", -1.0),
        "pearson": Metric("Pearson correlation", "× 100", -1.0),
        "mean_absolute_error": Metric("mean absolute error", ""),
    }
    exported: ClassVar = TransformersHead(
        "SequenceClassification", "regression", {"text_column": "text", "label_column": "value"}
    )
    prints_outputs: ClassVar[str] = 'print(outputs[0][:, 0] * config["labels"]["deviation"] + config["labels"]["mean"])'
    simplest: ClassVar[str] = "mean of train"
    record: ClassVar[type[Record]] = RegressionPrediction

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        true, predicted = ([float(line[key]) for line in lines] for key in ("label", "prediction"))
        if metric == "mean_absolute_error":
            return np.abs(np.array(true, np.float64) - np.array(predicted, np.float64))
        return {"pearson": of_pearson, "spearman": of_spearman}[metric](true, predicted)

    @override
    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        return -self.contributions(lines, "mean_absolute_error")

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[RatedText | LeftOut]:
        for row in self.rows(path, labelled):
            if isinstance(row, LeftOut):
                yield row
                continue
            line, texts, label = row
            yield RatedText(line, texts, None if label is None else self._number(label, path, line))

    def _number(self, label: str, path: Path, line: int) -> float:
        try:
            value = float("nan" if "_" in label else label)  # 1_000 is a number to Python alone
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            advice = "regression learns numbers, --task classification names"
            if _DECIMAL_COMMA.fullmatch(label):
                advice = f"write it with a point, {label.replace(',', '.')}"
            raise UserError(f"{path}:{line}: '{label}' is no number (column '{self.label_column}'); {advice}")
        if abs(value) > _LARGEST:
            where = f"{path}:{line}: {label} (column '{self.label_column}')"
            raise UserError(f"{where} is beyond {_LARGEST:g}; scale the numbers")
        return value

    @override
    def example(self, texts: Sequence[str]) -> RatedText:
        return RatedText(0, tuple(texts))

    @override
    def learn(self, train: Sequence[RatedText], origin: str) -> "Regression":
        values = np.array([each.value for each in train])
        if values.min() == values.max():
            raise UserError(f"{origin}: all numbers are {values[0]:g}; there is nothing to learn")
        if not values.std():
            between = f"{origin}: all numbers are between {values.min():g} and {values.max():g}"
            raise UserError(f"{between}, too near to each other for their squares; scale them")
        return Regression(self, float(values.mean()), float(values.std()))

    @classmethod
    @override
    def labels_of(cls, names: Sequence[str]) -> dict[str, float]:
        return dict(ON_SCALE)

    @override
    def restore(self, labels: Any, where: str) -> "Regression":
        scale = Scale.check(labels, where)
        return Regression(self, scale["mean"], scale["deviation"])


class Regression(Task):
    """The squared error of numbers, which are scaled in training to a mean of 0 and a standard deviation of 1."""

    def __init__(self, config: RegressionConfig, mean: float, deviation: float) -> None:
        self.config, self.metric, self.outputs = config, config.metric, 1
        self.mean, self.deviation = mean, deviation
        self.labels = {"mean": mean, "deviation": deviation}

    @property
    @override
    def output_names(self) -> list[str]:
        return ["value"]

    @property
    @override
    def output_scale(self) -> tuple[float, float]:
        return self.deviation, self.mean

    @property
    @override
    def labels_on_scale(self) -> dict[str, float]:
        return dict(ON_SCALE)

    @override
    def encode(self, examples: Sequence[RatedText], format: InputFormat) -> Items:
        values = [each.value for each in examples]
        targets = [None if value is None else (value - self.mean) / self.deviation for value in values]
        return Items.one_each(format.encode(*sides_of(examples)), targets)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        values = torch.tensor([items.targets[item] for item in chosen], dtype=torch.float32)
        return F.mse_loss(scores[:, 0], sent(values, scores.device))

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """The number, of shape (), on the scale of the training, for each item."""
        return list(scores[:, 0].cpu().numpy())

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        return float(np.mean((np.array(outputs, np.float64) - np.array(items.targets, np.float64)) ** 2))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[float]:
        return [float(value) * self.deviation + self.mean for value in items.mean_by_example(outputs)]

    @override
    def score(self, examples: Sequence[RatedText], predictions: Sequence[float]) -> dict[str, float]:
        return regression_scores([each.value or 0.0 for each in examples], predictions)

    @override
    def simplest(self, train: Sequence[RatedText], test: Sequence[RatedText]) -> dict[str, float]:
        return self.score(test, [self.mean] * len(test))

    @override
    def simplest_lines(self, train: Sequence[RatedText], test: Sequence[RatedText]) -> list[dict[str, Any]]:
        if self.metric != "mean_absolute_error":  # numbers that are all the same correlate with nothing
            return []
        return [self.line(each, self.mean) for each in test]

    @override
    def baselines(self, train: Sequence[RatedText]) -> Iterator[Learned]:
        """Ridge regressions on TF-IDF of words or of characters; for pairs also on the cosine of both texts."""
        from sklearn.linear_model import Ridge

        values = [each.value for each in train]
        for name, features in counted(train, likeness=True):
            rows = features(train)
            for alpha in REGULARISATION:
                model = Ridge(alpha=alpha, solver="sparse_cg", tol=1e-5).fit(rows, values)

                def predict(examples: Sequence[RatedText], model: Any = model, features: Any = features) -> Any:
                    return model.predict(features(examples)).tolist()

                yield Learned("TF-IDF with ridge regression", {"features": name, "alpha": alpha}, predict)

    @override
    def line(self, example: RatedText, prediction: float) -> dict[str, Any]:
        return {"label": example.value, "prediction": _rounded(prediction, 9)}  # all digits: ranks are compared

    @override
    def as_record(self, example: RatedText, prediction: float) -> dict[str, Any]:
        return {"value": _rounded(prediction, 6)}

    @override
    def shown(self, example: RatedText, prediction: float) -> tuple[str, ...]:
        return (f"{prediction:.4f}" if abs(prediction) >= 1e-3 else f"{prediction:.4g}",)


def regression_scores(values: Sequence[float], predictions: Sequence[float]) -> dict[str, float]:
    """Pearson's and Spearman's correlation (0 where either side is constant) and the mean absolute error."""
    from scipy import stats

    true, predicted = np.array(values, np.float64), np.array(predictions, np.float64)
    constant = len(true) < 2 or np.ptp(true) == 0 or np.ptp(predicted) == 0
    correlations = [0.0, 0.0]
    if not constant:
        correlations = [
            float(stats.pearsonr(true, predicted).statistic),
            float(stats.spearmanr(true, predicted).statistic),
        ]
    values_by_name = {"pearson": correlations[0], "spearman": correlations[1]}
    values_by_name["mean_absolute_error"] = float(np.abs(true - predicted).mean())
    return {name: _rounded(value, 7) for name, value in values_by_name.items()}


def _rounded(value: float, decimals: int) -> float:
    """A number with so many decimals, or, where it is small, with as many significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, max(decimals, decimals - 1 - math.floor(math.log10(abs(value)))))
