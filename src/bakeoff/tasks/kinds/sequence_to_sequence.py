"""Sequence to sequence: write a text for a text, such as a translation, a summary or the name of a class (T5)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator
from torch import Tensor
from typing_extensions import override

from bakeoff.config import Record
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig
from bakeoff.machine.transfer import sent
from bakeoff.ops.cross_entropy import cross_entropy
from bakeoff.reading.aligned import clean
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.tasks.examples import Example, LeftOut
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.heads.writing_head import WritingHead, require_writing
from bakeoff.tasks.predictions.written_texts import (
    WrittenText,
    joined_targets,
    loss_of_a_token,
    of_all_targets,
    of_targets,
    with_texts,
)
from bakeoff.tasks.reading.parallel_files import is_plain, read_pairs
from bakeoff.tasks.reading.tables import texts_of_table
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.writing import WritingBatch, WritingFormat, WritingItems, collate_targets
from bakeoff.tasks.scores.jackknife import Vector, of_ratios, of_sums
from bakeoff.tasks.scores.text_scores import BleuTokens, bleu_sums, chrf_sums, exact, rouge, signature, text_scores
from bakeoff.tasks.table_config import TableConfig
from bakeoff.tasks.task import Predictions, Task
from bakeoff.tasks.task_config import GeneratedTexts, Metric


@dataclass(frozen=True)
class SourceText(Example):
    """A source text with its target text."""

    target: str | None = None
    """The text to be written, in NFC, with runs of white space as one space; None where it is not known."""


class TextPrediction(Record):
    """A row of test and the text written for it: a line of predictions.jsonl."""

    label: str
    """The target."""
    prediction: str
    """The text that was written."""
    loss: float
    """The negative log-probability of the target, its end included, in nats."""
    tokens: int
    """The number of tokens of the target, its end included."""


class SequenceToSequenceConfig(TableConfig):
    """Sources, each with a target: .csv, .tsv or .jsonl with columns, or two plain files with a text on each line."""

    kind: Literal["sequence_to_sequence"] = "sequence_to_sequence"
    """The kind of the task: to write a text for a text."""
    text_column: str = "source"
    """The column with the source."""
    label_column: str = "target"
    """The column with the target. For plain files: the ending of the file with the targets; with `en`, the targets of
    train.de.gz are in train.en.gz."""
    prefix: str = ""
    """A text to put before each source, such as T5's `translate English to German:`; a space follows it."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """The share of a target token's probability that training spreads evenly over the vocabulary (Szegedy et al. 2016,
    arXiv:1512.00567, section 7); 0.1 in Vaswani et al. 2017. The losses on dev and test are without it."""
    longest: int = Field(default=128, gt=1)
    """The most tokens of a target, its end included: longer targets are cut, and writing stops there. The limit is
    lower where rows are shorter; for a decoder alone, whose row also holds the source, it is half of a row at most."""
    beams: int = Field(default=4, gt=0, le=1000)
    """Candidates of the search for the likeliest target (Vaswani et al. 2017, section 6.1); 1 always takes the most
    likely token. The evaluations on dev during training always write with 1."""
    length_penalty: float = Field(default=0.6, ge=0)
    """alpha: the search scores a text by its log-probability / ((5 + length) / 6)^alpha (Wu et al. 2016)."""
    bleu_tokens: BleuTokens = "auto"
    """How BLEU cuts texts into words: sacrebleu's 13a (WMT), intl, zh (Chinese), char, or none (at white space); auto:
    zh, char or 13a, by the script of the targets."""
    metric: Literal["loss", "bleu", "chrf", "rouge_1", "rouge_2", "rouge_l", "exact"] = "loss"
    """The measure on dev that decides which epoch and which learning rate are kept: the mean loss of a target's token,
    or a score of written texts; for a score, each evaluation on dev writes a text for every source of dev."""

    head: ClassVar[Literal["row", "tokens", "writing"]] = "writing"
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"loss"})
    metrics: ClassVar[Mapping[str, Metric]] = {
        "loss": Metric("loss of a token", ""),
        "bleu": Metric("BLEU", "× 100"),
        "chrf": Metric("chrF", "× 100"),
        "rouge_1": Metric("ROUGE-1", "× 100"),
        "rouge_2": Metric("ROUGE-2", "× 100"),
        "rouge_l": Metric("ROUGE-L", "× 100"),
        "exact": Metric("exact match"),
    }
    simplest: ClassVar[str] = "copied source or most frequent target"
    record: ClassVar[type[Record]] = TextPrediction

    @field_validator("prefix", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if isinstance(value, dict):  # YAML reads a text that ends with a colon as a mapping
            raise ValueError("a text with a colon needs quotes of its own: --option 'prefix=\"translate:\"'")
        return value

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column]

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        if metric == "loss":
            return of_ratios([line["loss"] for line in lines], [line["tokens"] for line in lines])
        labels, texts = ([line[side] for line in lines] for side in ("label", "prediction"))
        if metric == "bleu":
            return of_sums(*bleu_sums(labels, texts, self.bleu_tokens))
        if metric == "chrf":
            return of_sums(*chrf_sums(labels, texts))
        if metric == "exact":
            return exact(labels, texts)
        return np.array([rouge([label], [text])[metric] for label, text in zip(labels, texts, strict=True)], np.float64)

    @override
    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        """(N,) minus the loss of a token, and of BLEU and chrF the chrF of each text alone."""
        if metric == "loss":
            return -np.array([line["loss"] / max(1, line["tokens"]) for line in lines], np.float64)
        if metric in ("bleu", "chrf"):
            sums, value = chrf_sums([line["label"] for line in lines], [line["prediction"] for line in lines])
            return value(sums)
        return self.contributions(lines, metric)

    @override
    def require_model(self, recipe: Recipe) -> None:
        require_writing(recipe)

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[SourceText | LeftOut]:
        empty = True
        if path.is_file() and is_plain(path) and self.separator == "auto" and self.layout == "table":
            if self.encoding != "utf-8":
                raise UserError(f"{path}: plain files of sources and targets are read as UTF-8; convert them")
            for line, source, target in read_pairs(path, self.label_column, labelled, self.errors):
                empty = False
                yield SourceText(line, (source,), target)
            if empty:
                raise UserError(f"{path}: the file holds no rows")
            return
        label = self.label_column if labelled else None
        for row in texts_of_table(path, self.text_column, None, label, self.form):
            yield row if isinstance(row, LeftOut) else SourceText(*row)  # targets are in NFC, as labels are

    @override
    def example(self, texts: Sequence[str]) -> SourceText:
        return SourceText(0, tuple(texts))

    @override
    def learn(self, train: Sequence[SourceText], origin: str) -> "SequenceToSequence":
        task = SequenceToSequence(self)
        task.notes = [f"BLEU is sacrebleu's, {signature(self.bleu_tokens, [each.target or '' for each in train])}"]
        return task

    @override
    def restore(self, labels: Any, where: str) -> "SequenceToSequence":
        return SequenceToSequence(self)

    @property
    @override
    def written(self) -> GeneratedTexts:
        return GeneratedTexts(self.longest, self.prefix, self.beams)

    def generation(self, beams: int, longest: int) -> GenerationConfig:
        """The settings for writing targets of at most `longest` tokens with `beams` candidates."""
        return GenerationConfig(tokens=longest, beams=beams, length_penalty=self.length_penalty)


class SequenceToSequence(Task):
    """Cross-entropy of the targets' tokens, each predicted from those before it (teacher forcing)."""

    shows_texts = False

    def __init__(self, config: SequenceToSequenceConfig) -> None:
        self.config, self.metric, self.labels = config, config.metric, {}
        self.outputs = 0  # the size of the vocabulary, which only the head knows

    @override
    def encode(self, examples: Sequence[SourceText], format: InputFormat) -> WritingItems:
        prefix = self.config.prefix
        sources = [f"{prefix} {each.texts[0]}" if prefix else each.texts[0] for each in examples]
        items = WritingFormat(format, self.config.longest).encode(sources, [each.target for each in examples])
        return replace(items, notes=list(items.remarks()))

    @override
    def build_head(self, recipe: Recipe, vocabulary: int, config: FinetuneConfig) -> WritingHead:
        return WritingHead(recipe, vocabulary)

    @override
    def collate(self, items: Items, chosen: NDArray[np.int64], format: InputFormat) -> WritingBatch:
        return collate_targets(items, chosen, format)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        labels = sent(joined_targets(items, chosen), scores.device)
        return cross_entropy(scores.float(), labels, self.config.label_smoothing) / len(labels)

    @override
    def targets(self, items: Items, chosen: NDArray[np.int64]) -> float:
        return float(sum(len(items.targets[item]) for item in chosen))

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(tokens of the target,) log-probabilities of the target's tokens, for each item."""
        return of_targets(scores, items, chosen)

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        return loss_of_a_token(self.decode(outputs, items))

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[WrittenText]:
        """The predictions without texts: the losses of the targets alone, before anything is written."""
        return [WrittenText(None, None, -float(output.sum(dtype=np.float64)), len(output)) for output in outputs]

    @override
    def predict(
        self,
        head: HeadedModel,
        items: Items,
        format: InputFormat,
        placement: Placement,
        processes: Processes,
        in_training: bool,
    ) -> Predictions | None:
        assert isinstance(head, WritingHead)
        predictions, loss = [WrittenText(None, None, None, 0)] * len(items.owners), None
        if all(target is not None for target in items.targets):
            outputs = of_all_targets(head, items, format, placement, processes)
            predictions, loss = self.decode(outputs, items), self.mean_loss(outputs, items)
        if in_training and self.metric == "loss":
            return Predictions(predictions, loss)
        rows = WritingFormat(format, self.config.longest)
        how = self.config.generation(1 if in_training else self.config.beams, rows.longest)
        return Predictions(with_texts(predictions, head, items, rows, how, placement, processes), loss)

    @override
    def score(self, examples: Sequence[SourceText], predictions: Sequence[WrittenText]) -> dict[str, float]:
        scores = {"loss": round(loss_of_a_token(predictions), 7)} if predictions[0].target_loss is not None else {}
        texts = [each.text for each in predictions if each.text is not None]
        return scores | self._of_texts(examples, texts) if texts else scores

    def _of_texts(self, examples: Sequence[SourceText], texts: Sequence[str]) -> dict[str, float]:
        return text_scores([each.target or "" for each in examples], texts, self.config.bleu_tokens)

    @override
    def simplest(self, train: Sequence[SourceText], test: Sequence[SourceText]) -> dict[str, float]:
        """Scores of copying the source, or of always writing the most frequent target of train: the better of both.

        The metric decides which is better, or chrF where the metric is the loss. On a tie of targets the first counts.
        """
        return self._of_texts(test, self._simplest(train, test))

    @override
    def simplest_lines(self, train: Sequence[SourceText], test: Sequence[SourceText]) -> list[dict[str, Any]]:
        unknown = {"loss": 0.0, "tokens": 0}  # no model has given the targets a probability
        return [
            {"source": each.texts[0], "label": each.target, "prediction": text, **unknown}
            for each, text in zip(test, self._simplest(train, test), strict=True)
        ]

    def _simplest(self, train: Sequence[SourceText], test: Sequence[SourceText]) -> list[str]:
        counts = Counter(each.target or "" for each in train)
        most = min(counts, key=lambda target: (-counts[target], target))
        name = "chrf" if self.metric == "loss" else self.metric
        ways = [clean(each.texts[0]) for each in test], [most] * len(test)
        return max(ways, key=lambda texts: self._of_texts(test, texts)[name])

    @override
    def line(self, example: SourceText, prediction: WrittenText) -> dict[str, Any]:
        said = {"source": example.texts[0], "label": example.target, "prediction": prediction.text}
        return {**said, "loss": round(prediction.target_loss or 0.0, 6), "tokens": prediction.target_tokens}

    @override
    def as_record(self, example: SourceText, prediction: WrittenText) -> dict[str, Any]:
        assert prediction.log_probability is not None
        return {"text": prediction.text, "log_probability": round(prediction.log_probability, 6)}

    @override
    def shown(self, example: SourceText, prediction: WrittenText) -> tuple[str, ...]:
        return (prediction.text or "",)
