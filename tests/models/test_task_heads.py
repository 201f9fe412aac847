"""Heads of fine-tuning against transformers' models of the same weights: scores, losses and all gradients."""

import numpy as np
import pytest
import torch
from tests.models.parity import SIZES, VOCABULARY, Links, assert_equal, randomise, sized
from tests.models.test_against_transformers import (
    GPT_SIZES,
    IGNORED,
    OUR_GPT_SIZES,
    THEIR_SIZES,
    link_bert_blocks,
    link_embedding,
    link_gpt_block,
)

from bakeoff.row import Row
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import RowHead, TokenTaskHead
from bakeoff.tasks.kinds.choice import Choice, ChoiceConfig
from bakeoff.tasks.kinds.classification import Classification, ClassificationConfig
from bakeoff.tasks.kinds.multilabel import Multilabel, MultilabelConfig
from bakeoff.tasks.kinds.regression import Regression, RegressionConfig
from bakeoff.tasks.kinds.tagging import Tagging, TaggingConfig
from bakeoff.tasks.rows.inputs import EncodedRows
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.rows.tag_windows import TagTarget

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

ROWS, LENGTH, CLASSES = 6, 11, 5
BERT_RATE = 0.1
FILES = {"train": "train.tsv", "text_column": "text", "label_column": "label"}
TEXTS = EncodedRows([np.arange(3)] * ROWS, np.full(ROWS, 3), 0)
EVERY = np.arange(ROWS)
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}


@pytest.fixture(params=["evaluation", "training"])
def training(request):
    return request.param == "training"


@pytest.fixture
def batch():
    """(6, 11) rows of two segments, of unequal length."""
    ids = torch.randint(5, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [7], [4], [9], [11], [6]])
    segments = (torch.arange(LENGTH) > 3).long() * padding_mask
    return Row(ids, segments, padding_mask)


def bert(model, training, **settings):
    """Theirs with random weights."""
    return randomised(model(transformers.BertConfig(**THEIR_SIZES, **settings)), training)


def randomised(theirs, training):
    randomise(theirs)
    return theirs.train(training)


def linked_bert(head, theirs, training):
    """Ours with their weights."""
    links = Links(head)
    link_embedding(links, head.model.embedding, theirs.bert.embeddings)
    link_bert_blocks(links, head, theirs.bert)
    if head.pooler is not None:
        links.linear(head.pooler, theirs.bert.pooler.dense)
    links.linear(head.output, theirs.classifier)
    head.train(training)
    return links


def row_head(outputs):
    config = FinetuneConfig(pooling="cls", dropout=BERT_RATE)
    return RowHead(sized("bert-base", **SIZES), VOCABULARY, outputs, config)


def check(links, scores, expected_scores, loss, expected_loss):
    assert_equal(scores, expected_scores, "scores")
    assert_equal(loss, expected_loss, "loss")
    loss.backward()
    expected_loss.backward()
    links.check_gradients()


def row_task(kind):
    """A kind of task on single rows: itself, its targets, and the labels as transformers takes them."""
    generator = torch.Generator().manual_seed(2)
    if kind == "regression":
        values = torch.randn(ROWS, generator=generator)
        return Regression(RegressionConfig(**FILES), 0.0, 1.0), list(values.tolist()), values
    if kind == "several labels":
        table = torch.rand(ROWS, CLASSES, generator=generator) < 0.4
        task = Multilabel(MultilabelConfig(**FILES), list("abcde"))
        return task, list(table.numpy()), table.double()
    labels = torch.randint(CLASSES, (ROWS,), generator=generator)
    return Classification(ClassificationConfig(**FILES), list("abcde")), labels.tolist(), labels


@pytest.mark.parametrize("kind", ["classification", "several labels", "regression"])
def test_one_vector_of_each_row(batch, training, kind):
    problem = {"classification": "single_label_classification", "regression": "regression"}
    outputs = 1 if kind == "regression" else CLASSES
    theirs = bert(
        transformers.BertForSequenceClassification,
        training,
        num_labels=outputs,
        problem_type=problem.get(kind, "multi_label_classification"),
    )
    task, targets, labels = row_task(kind)
    head = row_head(outputs)
    links = linked_bert(head, theirs, training)
    expected = theirs(batch.ids, batch.padding_mask.long(), batch.segments, labels=labels)
    scores = head(batch)
    loss = task.loss(scores, Items.one_each(TEXTS, targets), EVERY)
    check(links, scores, expected.logits, loss, expected.loss)


def test_a_number_for_each_choice(batch, training):
    theirs = bert(transformers.BertForMultipleChoice, training)
    head = row_head(1)
    links = linked_bert(head, theirs, training)
    answers = torch.tensor([2, 0])
    ids, segments, padding_mask = (part.view(2, 3, LENGTH) for part in batch[:3])
    expected = theirs(ids, padding_mask.long(), segments, labels=answers)
    scores = head(batch)
    task = Choice(ChoiceConfig(**FILES, choices="choices"))
    items = Items(TEXTS, np.array([0, 3, 6]), np.arange(2), answers.tolist())
    loss = task.loss(scores, items, np.arange(2))
    # A number that is the same for all choices decides nothing: its gradient is zero, and what is left of it is noise.
    for bias in (head.output.bias, theirs.classifier.bias):
        bias.register_hook(lambda gradient: gradient.masked_fill(gradient.abs() < 1e-12, 0.0))
    check(links, scores, expected.logits.reshape(-1, 1), loss, expected.loss)


def test_a_tag_for_each_word(batch, training):
    theirs = bert(transformers.BertForTokenClassification, training, num_labels=CLASSES)
    head = TokenTaskHead(sized("bert-base", **SIZES), VOCABULARY, CLASSES, FinetuneConfig(dropout=BERT_RATE))
    links = linked_bert(head, theirs, training)
    words = batch.padding_mask & (torch.rand(ROWS, LENGTH, generator=torch.Generator().manual_seed(4)) < 0.6)
    tags = torch.randint(CLASSES, (ROWS, LENGTH), generator=torch.Generator().manual_seed(5))
    expected = theirs(batch.ids, batch.padding_mask.long(), batch.segments, labels=tags.masked_fill(~words, IGNORED))
    targets = [
        TagTarget(np.flatnonzero(row), np.arange(row.sum()), own[row].numpy())
        for row, own in zip(words.numpy(), tags, strict=True)
    ]
    task = Tagging(TaggingConfig(train="train.conll"), list("abcde"), [])
    scores = head(batch)
    loss = task.loss(scores, Items.one_each(TEXTS, targets), EVERY)
    assert_equal(scores[batch.padding_mask], expected.logits[batch.padding_mask], "scores")
    check(links, scores[words], expected.logits[words], loss, expected.loss)


def test_the_last_token_of_a_causal_model(batch, training):
    """Theirs has no bias in its map, and no dropout before it."""
    config = transformers.GPT2Config(**GPT_SIZES, num_labels=CLASSES, **SPECIAL, attn_implementation="eager")
    theirs = randomised(transformers.GPT2ForSequenceClassification(config), training)
    settings = FinetuneConfig(pooling="last", dropout=0.0)
    head = RowHead(sized("gpt2-base", **OUR_GPT_SIZES), VOCABULARY, CLASSES, settings)
    head.output.bias = None
    links = Links(head)
    links.tensor(head.model.embedding.tokens.weight, theirs.transformer.wte.weight)
    links.tensor(head.model.embedding.positions.weight, theirs.transformer.wpe.weight)
    for block, parts in zip(theirs.transformer.h, head.model.stack.layers, strict=True):
        link_gpt_block(links, parts, block)
    links.linear(head.model.stack.norm, theirs.transformer.ln_f)
    links.tensor(head.output.weight, theirs.score.weight)
    head.train(training)
    task, targets, labels = row_task("classification")
    ids = batch.ids.masked_fill(~batch.padding_mask, 0)
    expected = theirs(ids, attention_mask=batch.padding_mask.long(), labels=labels)
    scores = head(batch._replace(ids=ids, segments=None))
    loss = task.loss(scores, Items.one_each(TEXTS, targets), EVERY)
    check(links, scores, expected.logits, loss, expected.loss)
