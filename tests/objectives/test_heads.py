import math

import pytest
import torch
from tests.conftest import shrink
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.heads import AdaptiveTokenHead, HeadTransform, SentenceHead, TokenHead, UntiedTokenHead
from bakeoff.recipe_files import load_recipe, recipe_names


def adaptive(width=32, vocabulary=50, cutoffs=(10, 25), bias=False):
    torch.manual_seed(0)
    head = AdaptiveTokenHead(width, vocabulary, list(cutoffs), bias)
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def test_adaptive_softmax_equals_torchs_and_its_gradients():
    head = adaptive(bias=True)
    labels = torch.tensor([0, 9, 10, 24, 25, 49, 3])
    rows = torch.randn(7, 32)
    table = torch.empty(0)
    ours = head.loss(rows, labels, table)
    theirs = head.softmax(rows, labels).loss * 7
    torch.testing.assert_close(ours, theirs)
    parameters = list(head.parameters())
    found = torch.autograd.grad(ours, parameters)
    expected = torch.autograd.grad(theirs, parameters)
    torch.testing.assert_close(found, expected)
    probabilities = head.log_probabilities(rows, table)
    assert probabilities.shape == (7, 50)
    torch.testing.assert_close(probabilities.exp().sum(-1), torch.ones(7))
    torch.testing.assert_close(-probabilities[torch.arange(7), labels].sum(), ours)


def test_clusters_without_a_label_get_gradients_of_zero():
    head = adaptive()
    head.loss(torch.randn(2, 32), torch.tensor([0, 12]), torch.empty(0)).backward()
    assert all(parameter.grad is not None for parameter in head.parameters())
    assert float(head.softmax.tail[0][1].weight.grad.abs().sum()) > 0
    assert float(head.softmax.tail[1][1].weight.grad.abs().sum()) == 0


def test_adaptive_softmax_costs_what_its_labels_need():
    """Operations of rows whose labels follow Zipf's law, counted cluster by cluster."""
    head = adaptive()
    weights = torch.arange(1, 51, dtype=torch.float64).reciprocal()
    share = weights / weights.sum()
    expected = 2 * 32 * 12 + float(share[10:25].sum()) * 2 * 8 * (32 + 15) + float(share[25:].sum()) * 2 * 2 * (32 + 25)
    assert head.flops_per_row == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "head",
    [
        SentenceHead(24, 3),
        UntiedTokenHead(24, 50, bias=True),
        TokenHead(24, 16, 50, HeadTransform("gelu", 1e-12)),
        TokenHead(24, 24, 50),
        TokenHead(24, 16, 50),
    ],
)
def test_heads_cost_what_torch_counts(head):
    table = torch.zeros(50, 24 if getattr(head, "transform", head) is None else 16)
    with FlopCounterMode(display=False) as counter:
        head.scores(torch.zeros(7, 24), table)
    assert counter.get_total_flops() == 7 * head.flops_per_row


def test_loss_of_an_adaptive_softmax_under_autocast():
    head = adaptive()
    rows, labels = torch.randn(4, 32), torch.tensor([0, 12, 30, 49])
    exact = head.loss(rows, labels, torch.empty(0))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = head.loss(rows.bfloat16(), labels, torch.empty(0))
        assert head.log_probabilities(rows.bfloat16(), torch.empty(0)).dtype == torch.float32
    torch.testing.assert_close(rounded, exact, atol=1.0, rtol=0.02)


def test_cutoffs_that_the_vocabulary_does_not_reach_are_left_out():
    recipe = shrink("gcnn-tiny")
    head = PretrainingModel(recipe, 101).heads["clm"]
    assert head.clusters == [(40, 100), (100, 101)]
    assert PretrainingModel(recipe, 100).heads["clm"].clusters == [(40, 100)]
    assert isinstance(PretrainingModel(recipe, 40).heads["clm"], UntiedTokenHead)


def test_too_many_clusters_for_the_width_are_refused():
    with pytest.raises(UserError, match="a width of 32 leaves no channel to the last of 3 clusters"):
        AdaptiveTokenHead(32, 100, [10, 20, 30], bias=False)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ({"head": "adaptive"}, "head: adaptive needs 'cutoffs'"),
        ({"cutoffs": [10]}, "'cutoffs' belong to head: adaptive, and head is tied"),
        ({"head": "adaptive", "cutoffs": [20, 10]}, r"\[20, 10\] are not positive and rising"),
        ({"head": "adaptive", "cutoffs": [0, 10]}, r"\[0, 10\] are not positive and rising"),
        ({"head": "adaptive", "cutoffs": []}, "give at least 1"),
    ],
)
def test_cutoffs_that_make_no_sense_are_refused(objective, message):
    with pytest.raises(UserError, match=message):
        load_recipe("gpt-tiny", {"objective": [{"kind": "clm", **objective}]})


def test_heads_share_the_table_or_have_their_own():
    rows, table = torch.randn(3, 8), torch.randn(20, 5)
    tied = TokenHead(8, 5, 20, bias=True)
    torch.testing.assert_close(tied.scores(rows, table), tied.transform(rows) @ table.T)
    nn.init.ones_(tied.bias)
    torch.testing.assert_close(tied.scores(rows, table), tied.transform(rows) @ table.T + 1)
    untied = UntiedTokenHead(8, 20, bias=False)
    torch.testing.assert_close(untied.scores(rows, table), rows @ untied.output.weight.T)
    assert untied.output.bias is None


TOKEN_OBJECTIVES = {
    "mlm": "bert-tiny",
    "word_structure": "structbert-tiny",
    "permutation": "xlnet-tiny",
    "clm": "gpt-tiny",
    "prefix_clm": "prefix-lm-tiny",
    "mntp": "gpt-tiny",
    "bilm": "elmo-tiny",
    "span_corruption": "t5-tiny",
    "denoising": "bart-tiny",
    "deshuffling": "t5-tiny",
    "prefix_lm": "t5-tiny",
    "translation": "transformer-translation-tiny",
}
"""For each objective that predicts tokens a recipe whose model it can train."""


def test_every_objective_that_predicts_tokens_is_among_them():
    known = {kind for name in recipe_names() for kind in (part.kind for part in load_recipe(name).objective)}
    tokens = {part.kind for name in recipe_names() for part in load_recipe(name).objective if part.token_targets}
    assert tokens <= TOKEN_OBJECTIVES.keys()
    assert not (known - tokens) & TOKEN_OBJECTIVES.keys()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [*((kind, {}) for kind in TOKEN_OBJECTIVES), ("clm", {"head": "untied", "bias": True}), ("clm", {"bias": True})],
)
def test_the_squared_normaliser_is_added_to_the_loss_of_training_alone(kind, settings):
    """Summed over the rows; held-out losses come from what is without it."""
    weight, heads = 0.01, []
    for own in ({"z_loss": weight}, {}):
        torch.manual_seed(0)
        recipe = shrink(TOKEN_OBJECTIVES[kind], objective=[{"kind": kind, **settings, **own}])
        module = PretrainingModel(recipe, 40).double()
        for parameter in module.heads[kind].parameters():
            nn.init.normal_(parameter)
        heads.append(module.heads[kind])
    width = recipe.model.output_width // recipe.model.directions
    table = torch.randn(module.model.embedding.weight.shape, dtype=torch.float64)
    rows, labels = torch.randn(5, width, dtype=torch.float64), torch.tensor([3, 0, 39, 7, 7])
    with_it, plain = (head.loss(rows, labels, table).double() for head in heads)
    scores = heads[1].scores(rows, table).tolist()
    normaliser = plain.new_tensor([math.log(sum(math.exp(s) for s in row)) for row in scores])
    torch.testing.assert_close(with_it - plain, weight * normaliser.square().sum(), atol=1e-4, rtol=1e-4)
    assert torch.equal(*(head.log_probabilities(rows, table) for head in heads))


def test_an_objective_that_scores_with_anothers_head_has_its_squared_normaliser():
    for kinds, used in ((("mntp", "clm"), "mntp"), (("clm", "mntp"), "mntp")):
        parts = {"mntp": {"kind": "mntp", "causal": 0.5, "z_loss": 0.25}, "clm": {"kind": "clm", "z_loss": 0.5}}
        recipe = shrink("gpt-bert-tiny", objective=[parts[kind] for kind in kinds])
        module = PretrainingModel(recipe, 40)
        assert {each.head for each in module.objectives} == {module.heads[used]}
        assert module.heads[used].z_loss == 0.25


def test_an_adaptive_softmax_has_no_squared_normaliser():
    adaptive = {"kind": "clm", "head": "adaptive", "cutoffs": [10], "z_loss": 1e-4}
    with pytest.raises(UserError, match=r"z_loss: an adaptive softmax has a normaliser a cluster; set head to tied"):
        load_recipe("gpt-tiny", {"objective": [adaptive]})
    with pytest.raises(UserError, match=r"z_loss: input should be greater than or equal to 0"):
        load_recipe("gpt-tiny", {"objective": [{"kind": "clm", "z_loss": -1}]})
    with pytest.raises(UserError, match=r"unknown key 'z_loss'"):
        load_recipe("bert-tiny", ["objective.1.z_loss=1e-4"])
