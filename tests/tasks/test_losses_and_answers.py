"""What holds for every kind: its loss is that of its definition, and an answer depends on its own text alone."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from keyword_task import FILLERS
from tests.conftest import shrink, without_dropout

from bakeoff.resources.device import Placement
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.choice import ChoiceConfig, ChoiceQuestion
from bakeoff.tasks.kinds.classification import ClassificationConfig, LabelledText
from bakeoff.tasks.kinds.multilabel import MultilabelConfig, TextWithLabels
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.regression import RatedText, RegressionConfig
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig, SourceText
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.predictions import predicting, written_texts
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.reading.gold_answers import placed
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.registry import TASKS
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.task import Task
from bakeoff.tokenizer.tokenizer import Tokenizer

CPU = Placement(torch.device("cpu"), "float32")
COLUMNS = {"train": Path("t.tsv"), "text_column": "t", "label_column": "l"}
COUNTS = (3, 30, 1, 17, 9, 24, 5)
"""The words of each example; rows have room for fewer, so that some are cut, or read in windows."""


def words(count, first):
    return [FILLERS[(first + place) % len(FILLERS)] for place in range(count)]


def text(count, first=0):
    return " ".join(words(count, first))


def classified():
    rows = [LabelledText(n, (text(count, n),), "cab"[n % 3]) for n, count in enumerate(COUNTS)]
    return ClassificationConfig(**COLUMNS), rows


def labelled():
    names = [frozenset(own) for own in ("a", "", "bc", "abc", "b", "c", "ab")]
    rows = [TextWithLabels(n, (text(count, n),), own) for n, (count, own) in enumerate(zip(COUNTS, names, strict=True))]
    return MultilabelConfig(**COLUMNS), rows


def rated():
    return RegressionConfig(**COLUMNS), [RatedText(n, (text(count, n),), 3.5 * n) for n, count in enumerate(COUNTS)]


def tagged():
    rows = [
        TaggedSentence(n, tuple(words(count, n)), tuple("OBI"[(n + word * word) % 3] for word in range(count)))
        for n, count in enumerate(COUNTS)
    ]
    return TaggingConfig(**COLUMNS), rows


def asked():
    rows = []
    for n, count in enumerate(COUNTS):
        context = text(count, n)
        answers = () if n % 3 == 2 else (placed(" ".join(words(2, n + count // 2)), None, context, "here"),)
        rows.append(Question(n, (text(2, n), context), answers))
    return QuestionAnsweringConfig(train=Path("t.json"), stride=5, n_best=3, longest_answer=4), rows


def chosen_from():
    rows = [
        ChoiceQuestion(
            n, (text(count, n), text(n % 2, n), *(text(1 + n + place, place) for place in range(2 + n % 3))), n % 2
        )
        for n, count in enumerate(COUNTS)
    ]
    return ChoiceConfig(**COLUMNS, choices="c"), rows


def written():
    rows = [SourceText(n, (text(count, n),), text(1 + n, n)) for n, count in enumerate(COUNTS)]
    return SequenceToSequenceConfig(**COLUMNS, longest=6, beams=2), rows


class Case(NamedTuple):
    """Examples of a kind of task as items, and a head with weights that are far from zero."""

    task: Task
    examples: list[Any]
    format: InputFormat
    items: Items
    head: Any

    def predictions(self, examples):
        """The answers to examples, as JSON, and their loss."""
        items = self.task.encode(examples, self.format)
        found = predictions_of(self.head, items, self.task, self.format, CPU, labelled=True)
        pairs = zip(examples, found.predictions, strict=True)
        return [self.task.as_record(*pair) for pair in pairs], found.loss


MAKE = {make()[0].kind: make for make in (classified, labelled, rated, tagged, asked, chosen_from, written)}


def test_every_kind_is_here():
    assert MAKE.keys() == {kind for kind, config in TASKS.items() if config.__module__.startswith("bakeoff.")}


@pytest.fixture(scope="module", params=MAKE)
def case(request, corpus):
    config, examples = MAKE[request.param]()
    tokenizer, task = Tokenizer.load(corpus), config.learn(examples, "here")
    recipe = without_dropout(shrink("bart-tiny" if config.head == "writing" else "bert-tiny"))
    format = InputFormat(tokenizer, recipe, 16, "windows" if config.reads_windows else "head")
    torch.manual_seed(1)
    head = task.build_head(recipe, tokenizer.size, FinetuneConfig(pooling=natural_pooling(recipe), dropout=0.0)).eval()
    for parameter in head.parameters():
        if parameter.dim() > 1:
            parameter.data *= 3
    return Case(task, examples, format, task.encode(examples, format), head)


def entropy(scores, target):
    scores = np.asarray(scores, np.float64)
    return np.logaddexp.reduce(scores) - scores[target]


def losses(case, item, scores):
    """The losses of an item's words, tokens, windows, or of the item, from the scores of its rows, by definition."""
    task, example = case.task, case.examples[case.items.owners[item]]
    match task.config.kind:
        case "classification":
            return [entropy(scores[0], "abc".index(example.label))]
        case "multilabel":
            signs = [1 if name in example.names else -1 for name in "abc"]
            return [np.mean([np.log1p(np.exp(-sign * score)) for sign, score in zip(signs, scores[0], strict=True)])]
        case "regression":
            values = [each.value for each in case.examples]
            return [((example.value - np.mean(values)) / np.std(values) - scores[0, 0]) ** 2]
        case "tagging":
            target = case.items.targets[item]
            tags = ["BIO".index(example.tags[word]) for word in target.words]
            return [entropy(scores[0, place], tag) for place, tag in zip(target.positions, tags, strict=True)]
        case "question_answering":
            window = case.items.targets[item]
            return [np.mean([entropy(scores[0][window.positions, side], window.target[side]) for side in (0, 1)])]
        case "choice":
            return [entropy(scores[:, 0], example.answer)]
        case "sequence_to_sequence":
            tokenizer = case.format.tokenizer
            (ids, _) = tokenizer.encode([example.target])[0]
            target = [*ids, tokenizer.separator][: task.config.longest]
            return [entropy(row, token) for row, token in zip(scores, target, strict=True)]


def drawn(case, item, width):
    """Scores of the rows of an item, or of the tokens of its target."""
    draw = np.random.default_rng(item)
    if case.task.config.head == "writing":
        return draw.normal(size=(len(case.items.targets[item]), case.format.tokenizer.size))
    rows = int(case.items.bounds[item + 1] - case.items.bounds[item])
    shape = (rows, case.task.outputs) if case.task.config.head == "row" else (rows, width, case.task.outputs)
    return 2 * draw.normal(size=shape)


def test_the_loss_is_the_mean_over_what_is_predicted_in_whatever_batches(case):
    """Of all words together, not of rows: no mean of means, no sum; and the same in training and in reports."""
    count = len(case.items.owners)
    scores = [drawn(case, item, 16) for item in range(count)]
    every = [losses(case, item, own) for item, own in enumerate(scores)]
    assert count >= len(case.examples)
    outputs: list[Any] = [None] * count
    for some in np.array_split(np.random.default_rng(0).permutation(count), 3):
        given = torch.from_numpy(np.concatenate([scores[item] for item in some]))
        expected = np.mean(np.concatenate([every[item] for item in some]))
        assert case.task.loss(given, case.items, some).item() == pytest.approx(expected, rel=1e-5)
        for item, own in zip(some, case.task.read_outputs(given, case.items, some), strict=True):
            outputs[item] = own
    assert case.task.mean_loss(outputs, case.items) == pytest.approx(np.mean(np.concatenate(every)), rel=1e-4)


def test_an_answer_is_the_same_alone_and_among_others_in_every_order(case, monkeypatch):
    monkeypatch.setattr(predicting, "EVALUATION_BATCH", 3)
    monkeypatch.setattr(written_texts, "SCORES_AT_ONCE", 12 * case.format.tokenizer.size)
    at_once = []
    joined = written_texts.joined_targets
    monkeypatch.setattr(written_texts, "joined_targets", lambda *given: at_once.append(joined(*given)) or at_once[-1])
    found, loss = case.predictions(case.examples)
    assert bool(at_once) == (case.task.config.head == "writing")
    if at_once:
        assert len(at_once) > 1
        assert max(map(len, at_once)) <= max(12, *map(len, case.items.targets))
    alone = [case.predictions([each])[0][0] for each in case.examples]
    assert len({str(each) for each in alone}) > len(alone) / 2  # a text has an answer of its own
    for one, other in zip(found, alone, strict=True):
        assert one.keys() == other.keys()
        for key in one:
            assert flat(one[key]) == pytest.approx(flat(other[key]), abs=2e-3)
    again, same = case.predictions(case.examples[::-1])
    assert [str(each)[:30] for each in again[::-1]] == [str(each)[:30] for each in found]
    assert loss == pytest.approx(same, rel=1e-4)


def flat(value):
    """The numbers and names in a value of JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in np.atleast_1d(flat(part)).tolist()] if isinstance(value, list) else value


def test_the_length_of_an_item_is_the_number_of_its_tokens_in_a_batch(case):
    for item, length in enumerate(case.items.lengths):
        batch = case.task.collate(case.items, np.array([item]), case.format)
        rows = getattr(batch, "source", None) or batch
        tokens = rows.ids.numel() if rows.padding_mask is None else int(rows.padding_mask.sum())
        written = 0 if rows is batch else len(case.items.targets[item])
        assert length == tokens + written
