"""The head of question answering and its loss against transformers' BertForQuestionAnswering, in float64."""

import numpy as np
import pytest
import torch
from tests.models.parity import SIZES, VOCABULARY, Links, assert_equal, randomise, sized
from tests.models.test_against_transformers import THEIR_SIZES, link_bert_blocks, link_embedding

from bakeoff.row import Row
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import build_head
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.answer_windows import AnswerWindow, TokenSpan, window_loss

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

LENGTHS, SECOND = [13, 9, 6], 4


def test_logits_loss_and_gradients_are_those_of_transformers():
    theirs = transformers.BertForQuestionAnswering(transformers.BertConfig(**THEIR_SIZES)).eval()
    randomise(theirs)
    ours = build_head("tokens", sized("bert-base", **SIZES), VOCABULARY, 2, FinetuneConfig(dropout=0.0)).eval()
    links = Links(ours)
    link_embedding(links, ours.model.embedding, theirs.bert.embeddings)
    link_bert_blocks(links, ours, theirs.bert)
    links.linear(ours.output, theirs.qa_outputs)
    ids = torch.randint(5, VOCABULARY, (3, max(LENGTHS)), generator=torch.Generator().manual_seed(1))
    padding_mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    segments = (torch.arange(max(LENGTHS)) >= SECOND).long().expand(3, -1) * padding_mask
    scores = ours(Row(ids, segments, padding_mask))
    found = theirs(ids, padding_mask.long(), segments)
    expected = torch.stack([found.start_logits, found.end_logits], -1)
    assert_equal(scores[padding_mask], expected[padding_mask], "logits")
    question = Question(1, ("", ""))
    targets = [TokenSpan(2, 5), TokenSpan(0, 0), None]
    windows = [
        AnswerWindow(question, np.zeros(n, np.int64), np.ones(n, np.int64), SECOND, 0, target)
        for n, target in zip([length - SECOND - 1 for length in LENGTHS], targets, strict=True)
    ]
    loss = window_loss(scores, windows)
    # Theirs is over all places of a row; those that are not told apart are put out of the way.
    told = torch.zeros_like(padding_mask)
    told[:, 0] = True
    for row, length in enumerate(LENGTHS):
        told[row, SECOND : length - 1] = True
    hidden = expected.masked_fill(~told[..., None], float("-inf"))[:2]
    places = torch.tensor([[SECOND + 1, SECOND + 4], [0, 0]])
    wanted = sum(torch.nn.functional.cross_entropy(hidden[..., side], places[:, side]) for side in (0, 1)) / 2
    assert_equal(loss, wanted, "loss")
    loss.backward()
    wanted.backward()
    # A bias that moves all places alike has no gradient but rounding, so the measure is that of all gradients.
    for target, sources, join in links.pairs:
        torch.testing.assert_close(target.grad, join([source.grad for source in sources]), atol=1e-12, rtol=1e-9)
    assert len(links.pairs) == len(list(ours.parameters()))


def test_where_nothing_is_learned_the_loss_is_0_without_a_gradient():
    scores = torch.randn(1, 6, 2, requires_grad=True)
    window = AnswerWindow(Question(1, ("", "")), np.zeros(2, np.int64), np.ones(2, np.int64), 3, 0, None)
    window_loss(scores, [window]).backward()
    assert not scores.grad.any()
