"""Temporal convolutional networks against the equations of Bai et al. 2018, in float64 with explicit loops."""

import pytest
import torch
from tests.conftest import shrink
from torch import nn

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.costs import costs_of


def block(inputs, layer=0, causal=True, dropout=0.0, **options):
    """A block with weights, biases and magnitudes that are all random."""
    torch.manual_seed(0)
    place = BuildContext(width=inputs, causal=causal, dropout=dropout, layer=layer)
    part = TcnBlockConfig(**options).build(place)["mixer"].double()
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    return part


def dilated(x, weight, bias, dilation, right):
    """F(t) = b + sum_i f(i) x[t + right - d (K - 1 - i)], zeros outside the text."""
    kernel = weight.shape[1]
    rows = []
    for t in range(len(x)):
        total = bias.clone()
        for i in range(kernel):
            source = t + right - dilation * (kernel - 1 - i)
            if 0 <= source < len(x):
                total = total + weight[:, i] @ x[source]
        rows.append(total)
    return torch.stack(rows)


def reference(part, x, dilation, right=0, gate=False):
    """ReLU(x + ReLU(F_2 ReLU(F_1 x))) with W = g v / |v|, and x through a 1x1 convolution where widths differ.

    With gates the first half of the outputs times the sigmoid of the second stands for the inner ReLUs.
    """
    y = x
    for each in part.convolutions:
        length = (each.direction**2).sum((1, 2)).sqrt()
        weight = each.direction * (each.magnitude.flatten() / length)[:, None, None]
        y = dilated(y, weight, each.bias, dilation, right)
        half = y.shape[1] // 2
        y = y[:, :half] / (1 + torch.exp(-y[:, half:])) if gate else y.clamp(min=0)
    if part.projection is not None:
        x = x @ part.projection.direction[:, 0].T + part.projection.bias
    return (x + y).clamp(min=0)


@pytest.mark.parametrize(
    ("options", "dilation", "right"),
    [
        ({"layer": 0, "kernel": 3}, 1, 0),
        ({"layer": 2, "kernel": 3}, 4, 0),
        ({"layer": 1, "kernel": [5, 2], "dilation": [1, 3]}, 3, 0),
        ({"layer": 1, "kernel": 3, "width": 5}, 2, 0),
        ({"layer": 1, "kernel": 3, "causal": False}, 2, 2),
        ({"layer": 1, "kernel": 3, "width": 5, "gate": True}, 2, 0),
    ],
    ids=["first layer", "third layer", "lists", "another width", "centred", "gated"],
)
def test_equals_the_equations(options, dilation, right):
    part = block(4, **options)
    x = torch.randn(2, 11, 4, dtype=torch.float64)
    weights = torch.randn(2, 11, options.get("width", 4), dtype=torch.float64)
    found, _ = part(x, Context())
    expected = torch.stack([reference(part, row, dilation, right, options.get("gate", False)) for row in x])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    parameters = list(part.parameters())
    ours = torch.autograd.grad((found * weights).sum(), parameters)
    theirs = torch.autograd.grad((expected * weights).sum(), parameters)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


def test_padding_counts_as_zero_before_every_convolution():
    part = block(4, kernel=3, causal=False, layer=1)
    x = torch.randn(1, 9, 4, dtype=torch.float64)
    padding_mask = torch.arange(9)[None] < 6
    found, _ = part(x, Context(UNKNOWN._replace(padding_mask=padding_mask)))
    torch.testing.assert_close(found[0, :6], reference(part, x[0, :6], 2, 2), atol=1e-10, rtol=1e-10)


def test_a_document_is_convolved_as_if_it_stood_alone():
    part = block(4, kernel=3, layer=1)
    x = torch.randn(1, 9, 4, dtype=torch.float64)
    found, _ = part(x, Context(UNKNOWN._replace(documents=torch.tensor([[1, 1, 1, 1, 2, 2, 2, 2, 2]]))))
    torch.testing.assert_close(found[0, 4:], reference(part, x[0, 4:], 2), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("unit", "whole"), [("channels", True), ("elements", False)])
def test_dropout_takes_whole_channels_or_elements(unit, whole):
    part = block(64, kernel=1, dropout=0.5, dropout_of=unit)
    nn.init.zeros_(part.convolutions[1].direction)
    nn.init.ones_(part.convolutions[1].bias)  # after the second convolution every element is 1 before its dropout
    part.convolutions[1].magnitude = None
    x = torch.zeros(3, 50, 64, dtype=torch.float64)
    dropped = part.train()(x, Context())[0]
    assert dropped.unique().tolist() == [0.0, 2.0]
    assert 0.3 < float((dropped == 0).double().mean()) < 0.7
    same = (dropped == dropped[:, :1]).all(1)  # (B, D) one value at all positions
    assert bool(same.all()) == whole
    assert not bool((dropped[0] == dropped[1]).all())
    torch.testing.assert_close(part.eval()(x, Context())[0], torch.ones_like(x))


def test_layers_double_their_dilation():
    module = build_on_meta(shrink("tcn-tiny", **{"model.decoder.layers": 4}), 100)
    parts = module.model.stack.parts["mixer"]
    assert [[each.dilation for each in part.convolutions] for part in parts] == [[1, 1], [2, 2], [4, 4], [8, 8]]


def test_a_list_that_is_too_short_is_refused():
    with pytest.raises(UserError, match=r"block.dilation: the list has 2 sizes, but there is a layer 3"):
        block(4, kernel=3, layer=2, dilation=[1, 2])


@pytest.mark.parametrize(("name", "tokens"), [("tcn-ptb", 61), ("tcn-char-ptb", 29), ("tcn-wikitext103", 125)])
def test_receptive_fields_are_the_papers(name, tokens):
    assert costs_of(load_recipe(name), 300_000).receptive_field == {"decoder": tokens}


def test_parameters_are_those_of_the_published_code():
    assert costs_of(load_recipe("tcn-ptb"), 10_000).parameters == 14_659_600
