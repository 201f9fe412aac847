"""Multiple choice: which of several texts goes with a context and perhaps a question (RACE, SWAG, COPA)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from bakeoff.reading.table_reader import text_value
from bakeoff.tasks.examples import Example, LeftOut
from bakeoff.tasks.reading.choice_labels import ChoiceLabels, Way
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.jackknife import Vector, of_classes
from bakeoff.tasks.table_config import TableConfig
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TransformersHead

FEWEST_CHOICES = 2


@dataclass(frozen=True)
class ChoiceQuestion(Example):
    """A context with its choices; `texts` holds the context, the question ("" where there is none) and the choices."""

    answer: int | None = None
    """The index of the right choice, counted from 0; None where it is not known."""
    label_is: Way | None = field(default=None, compare=False)
    """The way in which all labels of the file are read; None: there is none."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts to choose from."""
        return self.texts[2:]

    @property
    @override
    def stratum(self) -> str:
        return str(self.answer)

    @property
    @override
    def cluster(self) -> tuple[str, ...]:
        """The context, on which RACE has several questions."""
        return self.alike[:1]


class ChoicePrediction(Record):
    """A row of test and the prediction for it: a line of predictions.jsonl."""

    label: int
    """The index of the right choice, counted from 0."""
    prediction: int
    """The index of the predicted choice, counted from 0."""


class Chosen(NamedTuple):
    """The most probable choice."""

    choice: int
    """The index of that choice, counted from 0."""
    probabilities: NDArray[np.float32]
    """(number of choices,) the probability of each choice."""


class ChoiceConfig(TableConfig):
    """Contexts with choices: .jsonl with a list of choices, or .csv, .tsv or .jsonl with a column for each choice."""

    kind: Literal["choice"] = "choice"
    """The kind of the task: to pick one of several texts."""
    text_column: str
    """The column with the context."""
    pair_column: str | None = None
    """The column with the question, or with the text that each choice goes on with."""
    choices: str | list[str]
    """The column with the list of choices, or a list of columns, one for each choice."""
    label_column: str
    """The column that says which choice is right: by number, by a letter from A on, by the choice's text,
    or by the name of its column."""
    first_choice: Literal[0, 1] = 0
    """The number that the file gives to the first choice, where the right choice is given by number."""
    label_is: Way | None = None
    """What the label is: text, column, place or letter. None: the first of these that all labels of train can be."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """The share of the right choice's probability that training spreads over all choices (Szegedy et al. 2016)."""
    metric: Literal["accuracy"] = "accuracy"
    """The score on dev that decides which epoch and which learning rate are kept."""

    sides: ClassVar[int | None] = None
    exported: ClassVar = TransformersHead(
        "MultipleChoice", columns={"text_column": "text", "choices": "choices", "label_column": "label"}
    )
    reading: ClassVar[frozenset[str]] = TableConfig.reading | {"choices", "first_choice", "label_is"}
    simplest: ClassVar[str] = "most frequent place"
    has_probabilities: ClassVar[bool] = True
    record: ClassVar[type[Record]] = ChoicePrediction

    @model_validator(mode="after")
    def _several(self) -> Self:
        if isinstance(self.choices, list) and len(self.choices) < FEWEST_CHOICES:
            raise ValueError("choices: name the column of each choice, two at least, or the one that holds their list")
        return self

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column, *([self.pair_column] if self.pair_column else [])]

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        return of_classes([line["label"] for line in lines], [line["prediction"] for line in lines], metric)

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[ChoiceQuestion | LeftOut]:
        if not labelled:
            yield from (each for each, _ in self._questions(path, labelled))
            return
        columns = self.choices if isinstance(self.choices, list) else []
        labels = ChoiceLabels(self.label_column, columns, self.first_choice, self.label_is)
        questions: list[ChoiceQuestion | LeftOut] = []
        for each, label in self._questions(path, labelled=True):
            if isinstance(each, ChoiceQuestion):
                labels.add(label, each.choices, f"{path}:{each.line}")
            questions.append(each)
        answers, way = iter(labels.indices()), labels.way
        for each in questions:
            yield each if isinstance(each, LeftOut) else replace(each, answer=next(answers), label_is=way)

    @override
    def settled(self, train: Sequence[ChoiceQuestion]) -> Self:
        return self.model_copy(update={"label_is": train[0].label_is})

    def _questions(self, path: Path, labelled: bool) -> Iterator[tuple[ChoiceQuestion | LeftOut, Any]]:
        """The questions of a file without their answers, each with its label, or None where labels are not read."""
        named = [self.choices] if isinstance(self.choices, str) else self.choices
        question = [self.pair_column] if self.pair_column else []
        columns = [self.text_column, *question, *named, *([self.label_column] if labelled else [])]
        for record in self.records(path, columns):
            if isinstance(record, LeftOut):
                yield record, None
                continue
            line, cells = record
            where = f"{path}:{line}"
            values = dict(zip(columns, cells, strict=True))
            texts = [text_value(values[self.text_column], where, self.text_column, self.errors)]
            texts.append(
                text_value(values[self.pair_column], where, self.pair_column, self.errors) if self.pair_column else ""
            )
            choices = values[named[0]] if isinstance(self.choices, str) else [values[name] for name in named]
            if not isinstance(choices, list) or len(choices) < FEWEST_CHOICES:
                raise UserError(
                    f"{where}: '{named[0]}' holds no list of two choices or more; name a column for each choice"
                )
            texts += [text_value(choice, where, "choices", self.errors) for choice in choices]
            yield ChoiceQuestion(line, tuple(texts)), values[self.label_column] if labelled else None

    @override
    def blank_texts(self, example: ChoiceQuestion) -> int:
        """The number of blank texts of an example; an absent question is not counted."""
        return sum(not text.strip() for text in (example.texts[0], *example.choices))

    @override
    def example(self, texts: Sequence[str]) -> ChoiceQuestion:
        before = len(self.text_columns)
        if len(texts) < before + FEWEST_CHOICES:
            raise UserError(f"give the context{', the question' * (before > 1)} and two choices at least")
        return ChoiceQuestion(0, (texts[0], *(texts[1:before] or ("",)), *texts[before:]))

    @override
    def learn(self, train: Sequence[ChoiceQuestion], origin: str) -> "Choice":
        return Choice(self)

    @classmethod
    @override
    def labels_of(cls, names: Sequence[str]) -> dict[str, Any]:
        return {}

    @override
    def restore(self, labels: Any, where: str) -> "Choice":
        return Choice(self)


class Choice(Task):
    """Cross-entropy over the choices of an item; each choice's row gets one number (Radford et al. 2018, 3.3)."""

    shows_texts = False

    def __init__(self, config: ChoiceConfig) -> None:
        self.config, self.metric, self.outputs, self.labels = config, config.metric, 1, {}

    @property
    @override
    def output_names(self) -> list[str]:
        return ["choice"]

    @override
    def encode(self, examples: Sequence[ChoiceQuestion], format: InputFormat) -> Items:
        firsts = [each.texts[0] for each in examples for _ in each.choices]
        seconds = [f"{each.texts[1]} {choice}".strip() for each in examples for choice in each.choices]
        bounds = np.concatenate([[0], np.cumsum([len(each.choices) for each in examples])]).astype(np.int64)
        return Items(
            format.encode(firsts, seconds), bounds, np.arange(len(examples)), [each.answer for each in examples]
        )

    def _by_item(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        """(items, most choices of an item) log-probabilities; -inf where an item has fewer choices."""
        counts = np.diff(items.bounds)[chosen]
        index = np.nonzero(np.arange(counts.max()) < counts[:, None])
        rows, columns = (sent(torch.from_numpy(each), scores.device) for each in index)
        table = scores.new_full((len(chosen), int(counts.max())), float("-inf"))
        table[rows, columns] = scores[:, 0]
        return table.log_softmax(-1)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        answers = sent(torch.tensor([items.targets[item] for item in chosen]), scores.device)
        table, share = self._by_item(scores, items, chosen), self.config.label_smoothing
        right = F.nll_loss(table, answers)
        if not share:
            return right
        there = table.isfinite()
        means = table.masked_fill(~there, 0).sum(1) / there.sum(1)
        smoothed: Tensor = (1 - share) * right - share * means.mean()
        return smoothed

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(number of choices,) log-probabilities of the choices, for each item."""
        table = self._by_item(scores, items, chosen).cpu().numpy()
        return [row[:count] for row, count in zip(table, np.diff(items.bounds)[chosen], strict=True)]

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        return float(-np.mean([row[answer] for row, answer in zip(outputs, items.targets, strict=True)]))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[Chosen]:
        return [Chosen(int(row.argmax()), np.exp(row)) for row in outputs]

    @override
    def score(self, examples: Sequence[ChoiceQuestion], predictions: Sequence[Chosen]) -> dict[str, float]:
        right = [each.answer == prediction.choice for each, prediction in zip(examples, predictions, strict=True)]
        return {"accuracy": round(float(np.mean(right)), 7)}

    @override
    def simplest(self, train: Sequence[ChoiceQuestion], test: Sequence[ChoiceQuestion]) -> dict[str, float]:
        """Scores of always choosing the place that is most often right in train; on a tie, the first such place."""
        right = [line["label"] == line["prediction"] for line in self.simplest_lines(train, test)]
        return {"accuracy": round(float(np.mean(right)), 7)}

    @override
    def simplest_lines(self, train: Sequence[ChoiceQuestion], test: Sequence[ChoiceQuestion]) -> list[dict[str, Any]]:
        counts = Counter(each.answer for each in train)
        most = min(counts, key=lambda index: (-counts[index], index))
        return [{"label": each.answer, "prediction": most} for each in test]

    @override
    def line(self, example: ChoiceQuestion, prediction: Chosen) -> dict[str, Any]:
        return {
            "label": example.answer,
            "prediction": prediction.choice,
            "probabilities": self.probabilities(prediction),
        }

    @override
    def as_record(self, example: ChoiceQuestion, prediction: Chosen) -> dict[str, Any]:
        return {"choice": prediction.choice, "probabilities": self.probabilities(prediction)}

    @override
    def probabilities(self, prediction: Chosen) -> list[float]:
        return [round(float(value), 6) for value in prediction.probabilities]

    @override
    def shown(self, example: ChoiceQuestion, prediction: Chosen) -> tuple[str, ...]:
        return (
            str(prediction.choice),
            f"{prediction.probabilities[prediction.choice]:.4f}",
            example.choices[prediction.choice],
        )
