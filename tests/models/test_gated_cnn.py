"""Gated convolutional networks against the equations of Dauphin et al. 2017, in float64 with explicit loops."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from bakeoff.errors import UserError
from bakeoff.models.blocks.convolution import Convolution
from bakeoff.models.blocks.gated_cnn import GatedCnnBlockConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.costs import costs_of


def place(width, causal=True, **others):
    return BuildContext(width=width, causal=causal, dropout=0.0, **others)


def block(convolutions, width, **options):
    """A block with weights, biases and magnitudes that are all random."""
    config = GatedCnnBlockConfig(convolutions=[{"kernel": k, "width": n} for k, n in convolutions], **options)
    torch.manual_seed(0)
    part = config.build(place(width))["mixer"].double()
    for parameter in part.parameters():
        nn.init.normal_(parameter)
    return part


GATES = {
    "glu": lambda a, b: a / (1 + torch.exp(-b)),
    "gtu": lambda a, b: (torch.exp(2 * a) - 1) / (torch.exp(2 * a) + 1) / (1 + torch.exp(-b)),
    "bilinear": lambda a, b: a * b,
    "relu": lambda a, _: a * (a > 0),
    "tanh": lambda a, _: (torch.exp(2 * a) - 1) / (torch.exp(2 * a) + 1),
    "none": lambda a, _: a,
}
"""Section 5.2, of the values of two convolutions; the last three have but one."""


def gated(x, direction, magnitude, bias, gate):
    """Equation 1, h = (X * W + b) sigmoid(X * V + c), zeros left of the text, with W = g v / |v| for each output."""
    outputs, kernel, _ = direction.shape
    rows = []
    for t in range(len(x)):
        linear = []
        for o in range(outputs):
            length = (direction[o] ** 2).sum().sqrt()
            scale = 1.0 if magnitude is None else magnitude[o, 0, 0] / length
            total = bias[o]
            for j in range(kernel):
                if t - kernel + 1 + j >= 0:
                    total = total + scale * (direction[o, j] @ x[t - kernel + 1 + j])
            linear.append(total)
        half = outputs // 2 if gate in ("glu", "gtu", "bilinear") else outputs
        rows.append(torch.stack([GATES[gate](linear[i], linear[(half + i) % outputs]) for i in range(half)]))
    return torch.stack(rows)


def reference(part, x, scale, residual=True, gate="glu"):
    y = x
    for each in part.convolutions:
        y = gated(y, each.direction, each.magnitude, each.bias, gate)
    if not residual:
        return y
    around = x
    if part.projection is not None:
        projection = part.projection
        length = projection.direction.flatten(1).norm(dim=1)
        around = x @ (projection.direction[:, 0] * (projection.magnitude.flatten() / length)[:, None]).T
        around = around + projection.bias
    return (y + around) * scale


@pytest.mark.parametrize(
    ("convolutions", "options", "scale"),
    [
        ([(4, 3)], {}, 1.0),
        ([(4, 3), (2, 3)], {}, 1.0),
        ([(1, 2), (3, 2), (1, 5)], {}, 1.0),
        ([(3, 5)], {"residual": "scaled"}, math.sqrt(0.5)),
        ([(3, 5)], {"residual": "none"}, 1.0),
        *(([(4, 3), (2, 3)], {"gate": gate}, 1.0) for gate in GATES),
        ([(4, 3)], {"weight_norm": False}, 1.0),
    ],
    ids=["one", "pair", "bottleneck with a projection", "scaled", "no residual", *GATES, "weights as they are"],
)
def test_equals_the_equations(convolutions, options, scale):
    part = block(convolutions, 3, **options)
    x = torch.randn(2, 7, 3, dtype=torch.float64)
    found, _ = part(x, Context())
    residual, gate = options.get("residual") != "none", options.get("gate", "glu")
    expected = torch.stack([reference(part, row, scale, residual, gate) for row in x])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    weights = torch.randn_like(found)
    parameters = list(part.parameters())
    ours = torch.autograd.grad((found * weights).sum(), parameters)
    theirs = torch.autograd.grad((expected * weights).sum(), parameters)
    torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)


def test_weight_normalisation_is_torchs():
    torch.manual_seed(0)
    ours = Convolution(3, 4, 2, causal=True, initial=nn.init.kaiming_normal_)
    theirs = nn.Conv1d(3, 4, 2)
    with torch.no_grad():
        theirs.weight.copy_(ours.direction.transpose(1, 2))
    torch.testing.assert_close(ours.weight, theirs.weight.transpose(1, 2))  # where it starts, it changes nothing
    weight_norm(theirs)
    with torch.no_grad():
        ours.magnitude.mul_(3)
        theirs.parametrizations.weight.original0.mul_(3)
    torch.testing.assert_close(ours.weight, theirs.weight.transpose(1, 2))
    upstream = torch.randn(4, 2, 3)
    (ours.weight * upstream).sum().backward()
    (theirs.weight * upstream.transpose(1, 2)).sum().backward()
    torch.testing.assert_close(ours.direction.grad, theirs.parametrizations.weight.original1.grad.transpose(1, 2))
    torch.testing.assert_close(ours.magnitude.grad, theirs.parametrizations.weight.original0.grad)


def test_initial_weights_have_kaimings_variance():
    torch.manual_seed(0)
    part = GatedCnnBlockConfig(convolutions=[{"kernel": 4, "width": 200}]).build(place(100))["mixer"]
    assert float(part.convolutions[0].weight.detach().std()) == pytest.approx(math.sqrt(2 / 400), rel=0.01)
    assert float(part.projection.weight.detach().std()) == pytest.approx(math.sqrt(1 / 100), rel=0.02)


def test_a_block_that_cannot_attend_refuses_an_encoder():
    config = GatedCnnBlockConfig(convolutions=[{"kernel": 4, "width": 8}])
    with pytest.raises(UserError, match=r"decoder.block: gated_cnn cannot attend to an encoder"):
        config.build(place(8, source=8))


@pytest.mark.parametrize(
    ("name", "tokens"), [("gcnn-8", 25), ("gcnn-8b", 25), ("gcnn-13", 40), ("gcnn-14", 47), ("gcnn-14b", 57)]
)
def test_receptive_fields_are_the_papers(name, tokens):
    assert costs_of(load_recipe(name), 300_000).receptive_field == {"decoder": tokens}
