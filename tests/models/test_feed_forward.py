"""The feed-forward network against its equation, in float64."""

import math

import pytest
import torch

from bakeoff.models.blocks.feed_forward import FeedForwardConfig
from bakeoff.models.context import Context, Place

ACTIVATIONS = {
    "relu": lambda z: max(0.0, z),
    "relu_squared": lambda z: max(0.0, z) ** 2,
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "gelu_tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
}


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_is_two_maps_with_the_activation_between_them(activation, gate):
    """W_2 (f(W_1 x + b_1) * (V x + c)) + b_2, number by number."""
    torch.manual_seed(0)
    place = Place(width=5, causal=False, dropout=0.0)
    network = FeedForwardConfig(width=7, activation=activation, gate=gate).build(place).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(2, 3, 5, dtype=torch.float64)
    inner = (x @ network.input.weight.T + network.input.bias).detach()
    inner = inner.apply_(ACTIVATIONS[activation])
    if gate:
        inner = inner * (x @ network.gate.weight.T + network.gate.bias)
    expected = inner @ network.output.weight.T + network.output.bias
    torch.testing.assert_close(network(x, Context())[0], expected)
