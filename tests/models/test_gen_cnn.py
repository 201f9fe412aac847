"""genCNN against its equations, written out one position at a time in float64, the recursion included."""

import pytest
import torch
from tests.conftest import shrink
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.context import UNKNOWN, BuildContext, Context

WIDTH, LENGTH = 3, 13
SIZES = {
    "even": {"kernel": 3, "alpha": (9, [4, 3], [3, 2]), "beta": (9, [3, 4], [])},
    "odd": {"kernel": 3, "alpha": (8, [4, 3], [3, 2]), "beta": (7, [3, 4], [])},
    "narrow": {"kernel": 2, "alpha": (4, [4], [2]), "beta": (3, [3], [])},
    "arrows in beta": {"kernel": 2, "alpha": (4, [4], []), "beta": (3, [3], [2])},
}


@pytest.fixture(params=[(name, gate) for name in SIZES for gate in ("shared", "per_position")], ids=str)
def part(request):
    name, gate = request.param
    sizes = dict(SIZES[name])
    for network in ("alpha", "beta"):
        window, flow, arrow = sizes[network]
        sizes[network] = {"window": window, "time_flow": flow, "time_arrow": arrow}
    torch.manual_seed(0)
    built = GenCnnBlockConfig(width=5, gate=gate, **sizes).build(BuildContext(width=WIDTH, causal=True, dropout=0.0))[
        "mixer"
    ]
    for parameter in built.parameters():
        parameter.data.normal_(std=0.7)
    return built.double()


def network(weights, prefix, slots):
    """alpha or beta of a list of vectors, the summary first."""
    layer, z = 0, slots
    while (name := f"{prefix}.layers.{layer}") + ".flow" in weights:
        flow, flow_bias = weights[f"{name}.flow"], weights[f"{name}.flow_bias"]
        arrow, arrow_bias = weights.get(f"{name}.arrow"), weights.get(f"{name}.arrow_bias")
        kernel = flow.shape[0]
        convolved = []
        for i in range(len(z) - kernel + 1):
            seen = torch.cat(z[i : i + kernel])
            maps = [flow.flatten(0, 1).T @ seen + flow_bias]
            if arrow is not None:
                own = arrow.shape[-1]
                maps.append(arrow[i].flatten(0, 1).T @ seen + arrow_bias[i * own : (i + 1) * own])
            convolved.append(torch.cat(maps).clamp(min=0))
        gates, merged = weights.get(f"{name}.gate", ()), []
        for j in range(len(convolved) // 2):
            first, second = convolved[2 * j], convolved[2 * j + 1]
            own_gate = gates[j if len(gates) > 1 else 0].flatten()
            g = 1 / (1 + torch.exp(-(own_gate @ torch.cat([first, second]))))
            merged.append(g * first + (1 - g) * second)
        z = merged + convolved[2 * len(merged) :]
        layer += 1
    scores = weights[f"{prefix}.output.weight"] @ torch.cat(z) + weights[f"{prefix}.output.bias"]
    return 1 / (1 + torch.exp(-scores))


def words(x, end, count, first):
    return [x[t] if t >= first else torch.zeros_like(x[0]) for t in range(end - count + 1, end + 1)]


def summary(part, weights, x, end, first):
    """What stands before the words that are cut off after `end`; zero where the document has not begun by then."""
    if end < first:
        return torch.zeros(WIDTH).double()
    size = part.beta.window
    older = summary(part, weights, x, end - size, first)
    return network(weights, "beta", [older, *words(x, end, size, first)])


def reference(part, x, firsts):
    """(T, D) words and the first place of each one's document, one position at a time."""
    weights, size = part.state_dict(keep_vars=True), part.alpha.window
    return torch.stack(
        [
            network(weights, "alpha", [summary(part, weights, x, t - size, first), *words(x, t, size, first)])
            for t, first in enumerate(firsts)
        ]
    )


def test_outputs_and_gradients_equal_the_equations(part):
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    found = part(x, Context())[0]
    expected = torch.stack([reference(part, row, [0] * LENGTH) for row in x])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    weight = torch.randn_like(expected)
    gradients = [torch.autograd.grad((y * weight).sum(), [x, *part.parameters()]) for y in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(("gate", "counts"), [("shared", [1, 1]), ("per_position", [4, 1])])
def test_gates_are_shared_by_the_pairs_of_a_layer_or_not(gate, counts):
    sizes = {"window": 9, "time_flow": [4, 4]}
    block = GenCnnBlockConfig(width=5, gate=gate, alpha=sizes, beta=sizes)
    layers = block.build(BuildContext(width=3, causal=True, dropout=0.0))["mixer"].alpha.layers
    assert [len(layer.gate) for layer in layers] == counts  # 10 slots: 8 positions, 4 pairs, then 2 positions, 1 pair


@pytest.mark.parametrize("length", [1, 5])
def test_a_text_that_alpha_holds_has_no_summary(part, length):
    x = torch.randn(1, length, WIDTH, dtype=torch.float64)
    found = part(x, Context())[0][0]
    torch.testing.assert_close(found, reference(part, x[0], [0] * length), atol=1e-10, rtol=1e-10)


def test_the_recursion_stops_where_the_document_begins(part):
    documents = torch.tensor([[1] * 2 + [2] * (LENGTH - 2), [1] * (LENGTH - 1) + [0]])
    firsts = [[0] * 2 + [2] * (LENGTH - 2), [0] * (LENGTH - 1) + [LENGTH - 1]]
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    found = part(x, Context(UNKNOWN._replace(documents=documents)))[0]
    expected = torch.stack([reference(part, row, first) for row, first in zip(x, firsts, strict=True)])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("chunk", [1, 4, LENGTH])
def test_the_state_is_bounded_and_enough(part, chunk):
    x = torch.randn(2, 3 * LENGTH, WIDTH, dtype=torch.float64)
    state, found = part.start(2, x), []
    for begin in range(0, x.shape[1], chunk):
        y, state = part(x[:, begin : begin + chunk], Context(start=begin), state)
        found.append(y)
        kept, summaries = state
        assert kept.shape[1] == part.alpha.window + part.beta.window - 1
        assert summaries.shape[1] == part.beta.window
    torch.testing.assert_close(torch.cat(found, dim=1), part(x, Context())[0], atol=1e-10, rtol=1e-10)


def test_counted_flops_equal_those_that_torch_counts(part):
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        part(x, Context())
    assert counter.get_total_flops() == pytest.approx(2 * LENGTH * part.flops_per_token(LENGTH), rel=0.001)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("alpha.window", 2, "block.alpha.window: 2 words are too few for 2 convolutions of kernel size 3"),
        ("beta.window", 3, "block.beta.window: 3 words are too few"),
    ],
)
def test_windows_that_are_too_short_are_refused(key, value, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(shrink("gencnn-tiny", **{f"model.decoder.block.{key}": value}), 100)


def test_both_kinds_of_maps_are_given_for_every_convolution():
    with pytest.raises(UserError, match="time_arrow has 1 numbers and time_flow 2"):
        shrink("gencnn-tiny", **{"model.decoder.block.alpha.time_arrow": [4]})


def test_the_window_is_no_encoder():
    sizes = {"window": 9, "time_flow": [4]}
    with pytest.raises(UserError, match="gen_cnn predicts the next token"):
        GenCnnBlockConfig(width=5, alpha=sizes, beta=sizes).build(BuildContext(width=8, causal=False, dropout=0.0))
