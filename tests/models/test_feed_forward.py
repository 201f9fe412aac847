"""The feed-forward network against its equation, in float64."""

import math

import pytest
import torch
from tests.models.test_attention_options import convolved

from bakeoff.errors import UserError
from bakeoff.models.blocks.feed_forward import FeedForwardConfig
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.recipe_files import load_recipe

ACTIVATIONS = {
    "relu": lambda z: max(0.0, z),
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "gelu_tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
}


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_is_two_maps_with_the_activation_between_them(activation, gate):
    """W_2 (f(W_1 x + b_1) * (V x + c)) + b_2, number by number."""
    torch.manual_seed(0)
    place = BuildContext(width=5, causal=False, dropout=0.0)
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


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("taps", [2, 3, 6])
@torch.no_grad()
def test_with_a_convolution_it_reads_neighbours_of_the_same_document(taps, causal):
    torch.manual_seed(0)
    place = BuildContext(width=5, causal=causal, dropout=0.0)
    settings = {"width": 7, "activation": "relu"}
    network = FeedForwardConfig(**settings, convolution=taps).build(place).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    alone = FeedForwardConfig(**settings).build(place).double()
    alone.load_state_dict({name: each for name, each in network.state_dict().items() if "convolution" not in name})
    x = torch.randn(2, 5, 5, dtype=torch.float64)
    documents = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 2, 2, 2]])
    expected = alone(convolved(x, network.convolution, documents), Context())[0]
    torch.testing.assert_close(network(x, Context(UNKNOWN._replace(documents=documents)))[0], expected)
    before, after = network.reach()
    assert before + after + 1 == taps
    assert before == (taps - 1 if causal else taps // 2)
    assert network.flops_per_token(5) == alone.flops_per_token(5) + 2 * 5 * taps


def test_a_convolution_is_refused_beside_a_second_stream():
    with pytest.raises(UserError, match=r"ffn\.convolution: relative_attention reads a second stream .* leave it out"):
        load_recipe("xlnet-tiny", ["model.encoder.block.ffn.convolution=3"])
