"""Tagging: a tag for each word of a sentence, such as entities (BIO) or parts of speech."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

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
from bakeoff.tasks.baselines.frequent_tags import most_frequent_tags
from bakeoff.tasks.examples import LeftOut
from bakeoff.tasks.predictions.legal_tags import NO_SPANS, LegalMoves, require_tags_of_spans
from bakeoff.tasks.reading.labels import ClassNames, label_text
from bakeoff.tasks.reading.texts_with_spans import remarks_on_widened, spans_in_text, words_of
from bakeoff.tasks.reading.words_and_tags import Columns, TaggedSentence, gives_words, has_fields, read_tagged
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.tag_windows import UNSEEN, tag_windows
from bakeoff.tasks.scores.jackknife import Vector, of_ratios
from bakeoff.tasks.scores.label_scores import LabelScore, counts_of, label_scores
from bakeoff.tasks.scores.spans import OUTSIDE, are_spans, span_counts, span_scores, type_counts
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import Metric, TaskConfig, TransformersHead


class TagPrediction(Record):
    """A sentence of test and the prediction for it: a line of predictions.jsonl."""

    words: list[str]
    """The words of the sentence."""
    label: list[str]
    """The right tag of each word."""
    prediction: list[str]
    """The predicted tag of each word."""


class TagLabels(Record):
    """The content of labels.json."""

    tags: ClassNames = Field(min_length=1)
    """The tags, in the order of the head's outputs."""
    moves: list[list[str]]
    """Pairs of tags that follow each other in train; a sentence counts as if O stood before its first word."""


class TaggingConfig(TaskConfig):
    """Sentences with a tag for each word: .conllu, .conll (.iob, .txt), .jsonl; .parquet, .arrow and `hub:`."""

    kind: Literal["tagging"] = "tagging"
    """The kind of the task: a tag for each word."""
    text_column: str | None = None
    """The column of the words, by number from 1, or in CoNLL-U by name; in .jsonl the field with the list of words, or
    with a raw text. Absent: the first column, or in CoNLL-U form."""
    label_column: str | None = None
    """The column of the tags, -1 for the last; in .jsonl the field with the list of tags. Absent: the last column,
    or in CoNLL-U upos."""
    spans_column: str | None = None
    """The field of .jsonl with a list of {start, end, label}, in characters of the raw text, in place of tags."""
    legal: bool = False
    """Predict the most probable sequence of tags in which every tag may follow the one before it. False: predict the
    most probable tag of each word on its own."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """The share of the right tag's probability that training spreads over all tags (Szegedy et al. 2016)."""
    metric: Literal["f1", "accuracy"] | None = None
    """The score on dev that decides which epoch and which learning rate are kept. Absent: f1 of spans where tags mark
    spans, else accuracy of words."""

    sides: ClassVar[int | None] = 1
    head: ClassVar[Literal["row", "tokens"]] = "tokens"
    reads_windows: ClassVar[bool] = True
    exported: ClassVar = TransformersHead(
        "TokenClassification",
        columns={},
        remark="pipelines tag token by token, and do not refuse tags that cannot follow each other",
    )
    prints_outputs: ClassVar[str] = (
        "print(outputs[0].argmax(-1))  # for each token the place of a tag in config.json's labels"
    )
    metrics: ClassVar[Mapping[str, Metric]] = {
        "f1": Metric("F1 of spans"),
        "precision": Metric("precision of spans"),
        "recall": Metric("recall of spans"),
        "accuracy": Metric("accuracy of words"),
    }
    blank_unit: ClassVar[str] = "word"
    simplest: ClassVar[str] = "each word's most frequent tag"
    record: ClassVar[type[Record]] = TagPrediction

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        """(N,) pseudo-values of the N sentences; every metric is a ratio of counts."""
        true, predicted = [line["label"] for line in lines], [line["prediction"] for line in lines]
        if metric == "accuracy":
            right = [sum(map(str.__eq__, one, other)) for one, other in zip(true, predicted, strict=True)]
            return of_ratios(right, [len(tags) for tags in true])
        counts = span_counts(true, predicted)
        wholes = {"f1": counts.wanted + counts.given, "precision": counts.given, "recall": counts.wanted}[metric]
        return of_ratios(counts.right * (2 if metric == "f1" else 1), wholes)

    @override
    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        """(N,) minus the number of wrong tags, or of spans that are missing or wrong."""
        true, predicted = [line["label"] for line in lines], [line["prediction"] for line in lines]
        if metric == "accuracy":
            wrong = [sum(map(str.__ne__, one, other)) for one, other in zip(true, predicted, strict=True)]
            return -np.array(wrong, np.float64)
        counts = span_counts(true, predicted)
        return np.asarray(2.0 * counts.right - counts.wanted - counts.given)

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[TaggedSentence | LeftOut]:
        columns = Columns(self.text_column, self.label_column, self.spans_column)
        count = 0
        for each in read_tagged(path, columns, labelled, self.errors, self.encoding):
            count += len(each.texts)
            # Every row of a file to be predicted has a prediction, also a row without words.
            yield each if each.texts or not labelled else LeftOut(each.line, (), "has no words")
        if not count:
            raise UserError(f"{path}: the file holds no words")

    @override
    def read_otherwise(self, settings: Mapping[str, Any]) -> Self:
        spans = {"spans_column": None} if "label_column" in settings else {}  # which tags stand for
        return super().read_otherwise({**spans, **settings})

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column or "text"]

    @override
    def reads_files(self, path: Path, column: str | None = None) -> bool:
        columns = Columns(self.text_column, self.label_column, self.spans_column)
        return gives_words(path, columns, column, self.encoding)

    @override
    def has_rows(self, path: Path, column: str | None = None) -> bool:
        return has_fields(path) or (super().has_rows(path, column) and not self.reads_files(path, column))

    @override
    def example(self, texts: Sequence[str]) -> TaggedSentence:
        """A raw text as a sentence: words as in files with spans where the task has spans, else at white space."""
        (text,) = texts
        if not self.spans_column:
            return TaggedSentence(0, tuple(text.split()), raw=text)
        split = words_of(text)
        return TaggedSentence(0, split.words, None, split.offsets, text)

    @override
    def learn(self, train: Sequence[TaggedSentence], origin: str) -> "Tagging":
        tags = sorted({tag for each in train for tag in each.tags or ()})
        if len(tags) < 2:
            raise UserError(f"{origin}: the only tag is '{tags[0]}'; at least two are needed")
        if are_spans(tags):
            require_tags_of_spans(_lines(train), tags, origin)
        elif self.metric == "f1":
            raise UserError(f"{origin}: {NO_SPANS}; give metric accuracy")
        moves = {pair for each in train for pair in zip((OUTSIDE, *(each.tags or ())), each.tags or (), strict=False)}
        task = Tagging(self, tags, sorted(moves))
        task.notes = [*task.moves.scheme(_lines(train)), *(f"train: {remark}" for remark in task.remarks(train))]
        return task

    @classmethod
    @override
    def labels_of(cls, names: Sequence[str]) -> dict[str, Any]:
        return {"tags": list(names), "moves": []}

    @override
    def restore(self, labels: Any, where: str) -> "Tagging":
        values = TagLabels.check(labels, where)
        moves = [(label_text(before), label_text(tag)) for before, tag in values["moves"]]
        return Tagging(self, list(map(label_text, values["tags"])), moves)


def _lines(examples: Sequence[TaggedSentence]) -> list[tuple[int, Sequence[str]]]:
    """The line on which each sentence ends, and its tags."""
    return [(each.line, each.tags or ()) for each in examples]


class Tagging(Task):
    """Cross-entropy over C tags, at the one token of each word that is used for its tag.

    A sentence that is too long is read in windows that overlap by half; a word's tag is taken from the window in
    which the word has the most context on both sides.
    """

    shows_texts = False

    def __init__(self, config: TaggingConfig, tags: list[str], moves: Sequence[tuple[str, str]]) -> None:
        self.config, self.tags, self.outputs = config, tags, len(tags)
        self.labels = {"tags": tags, "moves": [list(move) for move in moves]}
        self.spans = are_spans(tags)
        self.metric = config.metric or ("f1" if self.spans else "accuracy")
        self.indices = {tag: index for index, tag in enumerate(tags)}
        self.moves = LegalMoves(tags, moves)

    @property
    @override
    def classes(self) -> list[str]:
        return self.tags

    @override
    def check(self, examples: Sequence[TaggedSentence], path: Path, origin: str) -> None:
        if self.spans:
            require_tags_of_spans(_lines(examples), self.tags, str(path))

    @override
    def remarks(self, examples: Sequence[TaggedSentence]) -> Iterator[str]:
        """Remarks on spans that were widened, and on tags that stand where their scheme does not have them."""
        yield from remarks_on_widened([(each.line, each.widened) for each in examples if each.widened])
        if self.spans:
            yield from self.moves.remarks(_lines(examples))

    @override
    def encode(self, examples: Sequence[TaggedSentence], format: InputFormat) -> Items:
        sentences, tags = [each.texts for each in examples], [each.tags for each in examples]
        encoded, owners, targets = tag_windows(sentences, tags, self.indices, format)
        return Items(encoded, np.arange(len(owners) + 1), owners, targets, list(self.remarks(examples)))

    def _of_words(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        """(words of the chosen items, C) log-probabilities of the tags."""
        rows = np.repeat(np.arange(len(chosen)), [len(items.targets[item].positions) for item in chosen])
        positions = np.concatenate([items.targets[item].positions for item in chosen])
        index = tuple(sent(torch.from_numpy(each), scores.device) for each in (rows, positions))
        return scores[index].log_softmax(-1)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        tags = sent(torch.from_numpy(np.concatenate([items.targets[item].tags for item in chosen])), scores.device)
        # No batch is without words: every window was made for some. The softmax of log-probabilities gives the same
        # probabilities.
        log_probabilities = self._of_words(scores, items, chosen)
        return F.cross_entropy(log_probabilities, tags, label_smoothing=self.config.label_smoothing)

    @override
    def targets(self, items: Items, chosen: NDArray[np.int64]) -> float:
        return float(sum(len(items.targets[item].tags) for item in chosen))

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(n, C) log-probabilities of the tags of a window's n words, for each window."""
        ends = np.cumsum([len(items.targets[item].positions) for item in chosen])[:-1]
        return np.split(self._of_words(scores, items, chosen).cpu().numpy(), ends)

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        """The mean over the words whose tags are known."""
        tags = np.concatenate([target.tags for target in items.targets])
        known = np.flatnonzero(tags != UNSEEN)
        return float(-np.mean(np.concatenate(outputs)[known, tags[known]]))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[list[str]]:
        count = int(items.owners.max(initial=-1)) + 1
        parts: list[list[tuple[NDArray[np.int64], NDArray[np.float32]]]] = [[] for _ in range(count)]
        for owner, target, output in zip(items.owners, items.targets, outputs, strict=True):
            parts[owner].append((target.words, output))
        predictions = []
        for part in parts:
            words = np.concatenate([each for each, _ in part])
            table = np.concatenate([each for _, each in part])[np.argsort(words)]  # (words, C)
            indices = self.moves.likeliest(table) if self.config.legal else table.argmax(1)
            predictions.append([self.tags[index] for index in indices])
        return predictions

    @override
    def score(self, examples: Sequence[TaggedSentence], predictions: Sequence[Sequence[str]]) -> dict[str, float]:
        true = [each.tags or () for each in examples]
        pairs = [pair for one, other in zip(true, predictions, strict=True) for pair in zip(one, other, strict=True)]
        accuracy = sum(one == other for one, other in pairs) / len(pairs)
        scores = {**(span_scores(true, predictions) if self.spans else {}), "accuracy": accuracy}
        return {name: round(value, 7) for name, value in scores.items()}

    @override
    def score_labels(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[Sequence[str]]
    ) -> dict[str, LabelScore]:
        """Scores of each type of span, or of each tag where tags are not spans."""
        true = [each.tags or () for each in examples]
        if self.spans:
            return label_scores(type_counts(true, predictions))
        names = [*self.tags, *sorted(self.unseen(examples))]
        return label_scores(counts_of(list(chain(*true)), list(chain(*predictions)), names))

    @override
    def simplest(self, train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> dict[str, float]:
        """Scores of the most frequent tag of each word in train; unknown words get the most frequent tag of all."""
        return self.score(test, _frequent_tags(train, test))

    @override
    def simplest_lines(self, train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> list[dict[str, Any]]:
        return [self.line(*pair) for pair in zip(test, _frequent_tags(train, test), strict=True)]

    @override
    def line(self, example: TaggedSentence, prediction: Sequence[str]) -> dict[str, Any]:
        return {"words": list(example.texts), "label": list(example.tags or ()), "prediction": list(prediction)}

    @override
    def as_record(self, example: TaggedSentence, prediction: Sequence[str]) -> dict[str, Any]:
        record = {"words": list(example.texts), "tags": list(prediction)}
        return record if example.offsets is None else {**record, "spans": spans_in_text(prediction, example.offsets)}

    @override
    def shown(self, example: TaggedSentence, prediction: Sequence[str]) -> tuple[str, ...]:
        return (" ".join(f"{word}/{tag}" for word, tag in zip(example.texts, prediction, strict=True)),)


def _frequent_tags(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> list[list[str]]:
    return most_frequent_tags(((each.texts, each.tags or ()) for each in train), (each.texts for each in test))
