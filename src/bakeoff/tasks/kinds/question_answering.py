"""Question answering: find the stretch of a context that answers a question, or say that there is none (SQuAD)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.tasks.baselines.overlap import count_words, overlapping_answer
from bakeoff.tasks.predictions.answer_spans import PredictedAnswer, gathered
from bakeoff.tasks.reading.question_remarks import remarks_on_long_answers, remarks_on_questions, shortened
from bakeoff.tasks.reading.questions import Question, QuestionColumns, is_layout, read_questions
from bakeoff.tasks.rows.answer_windows import answer_windows, mean_window_loss, window_loss
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.answer_scores import best_threshold, scores_of_answers
from bakeoff.tasks.scores.jackknife import Vector
from bakeoff.tasks.scores.unspaced_answers import AnswerComparison, AnswerWords, comparison
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import Metric, TaskConfig, TransformersHead

BASELINE_QUESTIONS = 2000
"""The most questions of train that are read to choose the better of two predictions without a model."""


class AnswerPrediction(Record):
    """A question of test and the prediction for it: a line of predictions.jsonl."""

    id: str
    """The question's id in the file, or else the number of its line."""
    label: list[str]
    """The texts of the right answers; empty for a question without an answer."""
    prediction: str
    """The predicted answer, letter by letter as in the context; empty: the prediction is that there is no answer."""


class AnswerLabels(Record):
    """The content of labels.json."""

    unanswerable: bool
    """Whether some questions of train have no answer; if so, the model may predict that there is no answer."""
    threshold: float
    """The threshold for no answer, which is predicted where its score exceeds the best answer's by more than this."""


class QuestionAnsweringConfig(TaskConfig):
    """Questions on contexts: SQuAD's .json, .csv, .tsv or .jsonl, plain, .gz or .zst; .parquet, .arrow and `hub:`."""

    kind: Literal["question_answering"] = "question_answering"
    """The kind of the task: an answer out of a context."""
    text_column: str = "question"
    """The column with the question. This and the other columns are not used for .json in SQuAD's layout."""
    pair_column: str = "context"
    """The column with the text that holds the answer."""
    label_column: str = "answer"
    """The column with the answer's text, empty where the context has no answer. In .jsonl, .parquet, .arrow and `hub:`
    it may also hold a list of texts, or an object with the lists `text` and `answer_start`."""
    start_column: str | None = None
    """The column with the place in the context where the answer begins, in characters counted from 0. Absent: the
    first place where the answer's text stands."""
    stride: int = Field(default=128, gt=0)
    """The step in tokens from one window to the next, for a context that is longer than a row and so is read in
    windows; at most half a window."""
    longest_question: int = Field(default=64, gt=0)
    """The most tokens of a question, never more than half of the row; the rest of a longer question is cut off."""
    longest_answer: int = Field(default=30, gt=0)
    """The most tokens of a predicted answer."""
    n_best: int = Field(default=20, gt=0)
    """The number of candidates for each question; with that of no answer, their probabilities add up to 1."""
    answer_words: AnswerWords = "auto"
    """The words that answers are scored by. spaces: words between spaces (SQuAD); ideographs: each ideograph is a word
    (CMRC, DRCD); auto: ideographs where most of the right answers have some."""
    metric: Literal["f1", "exact"] = "f1"
    """The score on dev that decides which epoch and which learning rate are kept."""

    sides: ClassVar[int | None] = 2
    head: ClassVar[Literal["row", "tokens"]] = "tokens"
    reads_windows: ClassVar[bool] = True
    exported: ClassVar = TransformersHead("QuestionAnswering", columns={})
    prints_outputs: ClassVar[str] = (
        "# For each pair the likeliest first and last token of an answer, each by itself; 0: there is none.\n"
        "print(outputs[0].argmax(1))"
    )
    metrics: ClassVar[Mapping[str, Metric]] = {"f1": Metric("F1 of words"), "exact": Metric("exact match")}
    simplest: ClassVar[str] = "words near the question's, or none"
    record: ClassVar[type[Record]] = AnswerPrediction

    @property
    @override
    def text_columns(self) -> list[str]:
        return [self.text_column, self.pair_column]

    @override
    def reads_files(self, path: Path, column: str | None = None) -> bool:
        return is_layout(path)

    @override
    def has_rows(self, path: Path, column: str | None = None) -> bool:
        return super().has_rows(path, column) and not is_layout(path)

    @override
    def contributions(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        compare = comparison(self.answer_words, [line["label"] for line in lines])
        return np.array([getattr(compare(line["label"], line["prediction"]), metric) for line in lines], np.float64)

    @override
    def nearness(self, lines: Sequence[Mapping[str, Any]], metric: str) -> Vector:
        return self.contributions(lines, metric)

    @override
    def read(self, path: Path, labelled: bool = True) -> Iterator[Question]:
        columns = QuestionColumns(self.text_column, self.pair_column, self.label_column, self.start_column)
        return read_questions(path, columns, labelled, self.errors, self.encoding)

    @override
    def example(self, texts: Sequence[str]) -> Question:
        question, context = texts
        return Question(0, (question, context))

    @override
    def learn(self, train: Sequence[Question], origin: str) -> "QuestionAnswering":
        answered = [each for each in train if each.answers]
        if not answered:
            raise UserError(f"{origin}: no question has an answer (column '{self.label_column}'); some are needed")
        if not any(answer.start is not None for each in answered for answer in each.answers or ()):
            first = answered[0]
            raise UserError(
                f"{origin}: no answer stands in its context, that of {first.place} ('{shortened(first)}') as little as "
                "the others; are the columns the right ones, and the answers copied letter by letter?"
            )
        return QuestionAnswering(self, len(answered) < len(train), 0.0)

    @classmethod
    @override
    def labels_of(cls, names: Sequence[str]) -> dict[str, Any]:
        return {"unanswerable": False, "threshold": 0.0}

    @override
    def restore(self, labels: Any, where: str) -> "QuestionAnswering":
        values = AnswerLabels.check(labels, where)
        return QuestionAnswering(self, values["unanswerable"], values["threshold"])


class QuestionAnswering(Task):
    """Cross-entropy of an answer's first and of its last token (Devlin et al. 2019, sections 4.2 and 4.3).

    The loss of a window is the mean of both cross-entropies. Each is over the tokens of the context and one special
    token, which stands for the absence of an answer.
    """

    shows_texts = False

    def __init__(self, config: QuestionAnsweringConfig, unanswerable: bool, threshold: float) -> None:
        self.config, self.metric, self.outputs = config, config.metric, 2
        self.unanswerable, self.threshold = unanswerable, threshold
        self.labels = {"unanswerable": unanswerable, "threshold": threshold}

    @property
    @override
    def output_names(self) -> list[str]:
        return ["start", "end"]

    @override
    def encode(self, examples: Sequence[Question], format: InputFormat) -> Items:
        made = answer_windows(examples, format, self.config.longest_question, self.config.stride)
        lost = [each for each, span in zip(examples, made.spans, strict=True) if span is None]
        known = all(each.answers is not None for each in examples)
        notes = list(remarks_on_questions(examples, lost, self.unanswerable)) if known else []
        notes += remarks_on_long_answers(examples, made.lengths(), made.held(), self.config.longest_answer)
        if made.cut:
            notes.append(f"{made.cut} questions were cut to {self.config.longest_question} tokens, or half of a row")
        return Items(made.encoded, np.arange(len(made.windows) + 1), made.owners, made.windows, notes)

    @override
    def remarks(self, examples: Sequence[Question]) -> Iterator[str]:
        """Remarks on labelled questions, without those that depend on a tokenizer."""
        nowhere = [each for each in examples if each.answers and all(answer.start is None for answer in each.answers)]
        return remarks_on_questions(examples, nowhere, self.unanswerable)

    @override
    def loss(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> Tensor:
        return window_loss(scores, [items.targets[item] for item in chosen])

    @override
    def targets(self, items: Items, chosen: NDArray[np.int64]) -> float:
        return float(sum(items.targets[item].target is not None for item in chosen))

    @override
    def read_outputs(self, scores: Tensor, items: Items, chosen: NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """(1 + n, 2) scores of no answer and of a window's n tokens, as beginning and as end, for each window."""
        rows = scores.cpu().numpy()
        return [row[items.targets[item].positions] for row, item in zip(rows, chosen, strict=True)]

    @override
    def mean_loss(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> float:
        return mean_window_loss(outputs, items.targets)

    @override
    def decode(self, outputs: Sequence[NDArray[np.float32]], items: Items) -> list[PredictedAnswer]:
        return gathered(outputs, items, self.config.longest_answer, self.config.n_best)

    def text(self, prediction: PredictedAnswer) -> str:
        """The text of the predicted answer; empty for the prediction that there is no answer."""
        answered = prediction.candidates and not (self.unanswerable and prediction.difference > self.threshold)
        return prediction.candidates[0].text if answered else ""

    @override
    def resolve(self, examples: Sequence[Question], predictions: Sequence[PredictedAnswer]) -> "QuestionAnswering":
        """The task with the threshold that is best on dev, where train has questions without an answer."""
        both = zip(examples, predictions, strict=True)
        pairs = [(_right(each), prediction) for each, prediction in both if prediction.candidates]
        if not self.unanswerable or not pairs:
            return self
        compare = self._comparison(examples)
        gains = [
            getattr(compare(right, each.candidates[0].text), self.metric) - getattr(compare(right, ""), self.metric)
            for right, each in pairs
        ]
        threshold = best_threshold(np.array([each.difference for _, each in pairs], np.float64), np.array(gains))
        return QuestionAnswering(self.config, True, threshold)

    @override
    def score(self, examples: Sequence[Question], predictions: Sequence[PredictedAnswer]) -> dict[str, float]:
        return self._scores(examples, [self.text(each) for each in predictions])

    def _comparison(self, examples: Sequence[Question]) -> AnswerComparison:
        return comparison(self.config.answer_words, map(_right, examples))

    def _scores(self, examples: Sequence[Question], texts: Sequence[str]) -> dict[str, float]:
        compare = self._comparison(examples)
        results = [compare(_right(each), text) for each, text in zip(examples, texts, strict=True)]
        return scores_of_answers(results, [bool(each.answers) for each in examples])

    @override
    def simplest(self, train: Sequence[Question], test: Sequence[Question]) -> dict[str, float]:
        """Scores of answers of words near the question's words in the context; or of no answer, if better in train.

        The answers have as many words as the median answer in train.
        """
        return self._scores(test, self._simplest(train, test))

    @override
    def simplest_lines(self, train: Sequence[Question], test: Sequence[Question]) -> list[dict[str, Any]]:
        return [
            {"id": each.name or str(each.line), "label": _right(each), "prediction": text}
            for each, text in zip(test, self._simplest(train, test), strict=True)
        ]

    def _simplest(self, train: Sequence[Question], test: Sequence[Question]) -> list[str]:
        lengths = [count_words(answer.text) for each in train for answer in (each.answers or ())[:1]]
        words = max(1, round(median(lengths))) if lengths else 1

        def answers(examples: Sequence[Question], answering: bool) -> list[str]:
            pairs = [each.texts for each in examples]
            return [overlapping_answer(one, other, words) if answering else "" for one, other in pairs]

        def score(answering: bool) -> float:
            some = train[:BASELINE_QUESTIONS]
            return self._scores(some, answers(some, answering))[self.metric]

        return answers(test, not self.unanswerable or score(True) >= score(False))

    def _probability(self, prediction: PredictedAnswer) -> float:
        """The probability of the prediction."""
        values, none = prediction.probabilities(self.unanswerable)
        return values[0] if self.text(prediction) else none if self.unanswerable else 1.0

    @override
    def line(self, example: Question, prediction: PredictedAnswer) -> dict[str, Any]:
        return {
            "id": example.name or str(example.line),
            "label": _right(example),
            "prediction": self.text(prediction),
            "probability": self._probability(prediction),
            **({"no_answer": prediction.probabilities(self.unanswerable)[1]} if self.unanswerable else {}),
        }

    @override
    def as_record(self, example: Question, prediction: PredictedAnswer) -> dict[str, Any]:
        values, none = prediction.probabilities(self.unanswerable)
        text = self.text(prediction)
        best = prediction.candidates[0] if text else None
        return {
            **({"id": example.name} if example.name else {}),
            "answer": text,
            "start": best.start if best else None,
            "end": best.end if best else None,
            "probability": self._probability(prediction),
            **({"no_answer": none} if self.unanswerable else {}),
            "n_best": [
                {"answer": each.text, "start": each.start, "end": each.end, "probability": value}
                for each, value in zip(prediction.candidates, values, strict=True)
            ],
        }

    @override
    def shown(self, example: Question, prediction: PredictedAnswer) -> tuple[str, ...]:
        return self.text(prediction), f"{self._probability(prediction):.4f}", example.texts[0]


def _right(question: Question) -> list[str]:
    """The texts of the right answers."""
    return [answer.text for answer in question.answers or ()]
