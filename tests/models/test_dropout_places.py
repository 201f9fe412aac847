"""Where dropout acts: at a rate of one half, what each part makes of ones has zeros where its paper has them.

Weights are chosen so that, but for dropout, every output is one known number: what comes out then tells how many masks
an element has gone through. Where an independent implementation exists, places and rates are compared with it
(test_against_transformers.py and its neighbours); here stand all other parts.
"""

import math

import pytest
import torch
from torch import nn

from bakeoff.models.blocks.cnn import CnnBlockConfig, Highway
from bakeoff.models.blocks.feed_forward import FeedForwardConfig
from bakeoff.models.blocks.gated_cnn import GatedCnnBlockConfig
from bakeoff.models.blocks.gen_cnn import GenCnnBlockConfig
from bakeoff.models.blocks.plain import PlainBlockConfig
from bakeoff.models.blocks.tcn import TcnBlockConfig
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.cross_attention import CrossAttentionConfig
from bakeoff.models.mixers.dynamic_conv import DynamicConvConfig
from bakeoff.models.mixers.light_conv import LightConvConfig
from bakeoff.models.mixers.none import NoMixingConfig
from bakeoff.models.mixers.relative_attention import RelativeAttentionConfig
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import AdaptiveTokenHead, HeadTransform, SentenceHead, TokenHead, UntiedTokenHead
from bakeoff.row import Queries, Row

ROWS, LENGTH, WIDTH, HALF = 8, 32, 32, 0.5
ONES = torch.ones(ROWS, LENGTH, WIDTH)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def place(dropout=HALF, **others):
    return BuildContext(width=WIDTH, causal=False, dropout=dropout, **others)


def assert_masked(y, plain, times=1, rest=0.0):
    """Of all elements 1 - 2^-times are `rest`, and the others `rest` + 2^times `plain`."""
    values, counts = torch.round(y.detach(), decimals=4).unique(return_counts=True)
    expected = sorted({round(rest, 4), round(rest + plain * 2**times, 4)})
    torch.testing.assert_close(values.sort().values, torch.tensor(expected), atol=2e-4, rtol=1e-3)
    share = float(counts[(values - rest).abs() < 1e-3].sum()) / y.numel()
    dropped = 1 - 0.5**times
    assert share == pytest.approx(dropped, abs=6 * math.sqrt(dropped * (1 - dropped) / y.numel()))


def assert_plain(y, value):
    torch.testing.assert_close(y, torch.full_like(y, value), atol=1e-5, rtol=1e-5)


def identity(linear, value=1.0):
    """A linear map, or the first rows of one, that gives back what comes in."""
    with torch.no_grad():
        linear.weight.zero_()
        linear.weight.fill_diagonal_(value)
        if linear.bias is not None:
            linear.bias.zero_()


def zero(*parameters):
    for parameter in parameters:
        nn.init.zeros_(parameter)


class Constant(nn.Module):
    """A function whose value is one everywhere."""

    adds = False

    def forward(self, x, context, state=None):
        return torch.ones_like(x), state


class PlusOne(nn.Module):
    """A norm that tells what has gone through it."""

    def forward(self, x):
        return x + 1


def sublayer(norm, dropout=HALF):
    config = TransformerBlockConfig(norm=norm, mixer=NoMixingConfig(), ffn=FeedForwardConfig(width=WIDTH))
    part = config.build(place(dropout))["mixer"]
    part.function, part.norm = Constant(), PlusOne()
    return part


@pytest.mark.parametrize(
    ("norm", "rest"),
    [
        ("post", 4.0),
        ("pre", 3.0),
        ("branch", 4.0),
    ],  # x = 3; post: x + {0, 2} + 1; pre: x + {0, 2}; branch: the same + 1
)
def test_a_sublayer_drops_what_its_function_gives(norm, rest):
    part = sublayer(norm)
    assert_masked(part(3 * ONES, Context())[0], 1.0, rest=rest)
    assert_plain(part.eval()(3 * ONES, Context())[0], rest + 1)


def test_a_plain_block_drops_what_its_function_gives():
    for residual, rest in ((False, 0.0), (True, 3.0)):
        part = PlainBlockConfig(mixer=NoMixingConfig(), residual=residual).build(place())["mixer"]
        part.function = Constant()
        assert_masked(part(3 * ONES, Context())[0], 1.0, rest=rest)
        assert_plain(part.eval()(3 * ONES, Context())[0], rest + 1)


@pytest.mark.parametrize("gate", [False, True])
def test_a_feed_forward_network_drops_what_is_activated_if_it_says_so(gate):
    for rate in (0.0, HALF):
        part = FeedForwardConfig(width=WIDTH, activation="relu", gate=gate, dropout=rate).build(place())
        identity(part.output)
        for linear in [part.input] + ([part.gate] if gate else []):
            identity(linear)
        y = part(ONES, Context())[0]
        if rate:
            assert_masked(y, 1.0)
        else:
            assert_plain(y, 1.0)  # the model's dropout is not for the inside of the network: BERT, GPT, the Transformer
        assert_plain(part.eval()(ONES, Context())[0], 1.0)


def each_its_own_value(attention, key_value):
    """Scores are equal, and the value of place s is the s-th unit vector: outputs are the weights."""
    with torch.no_grad():
        zero(*attention.parameters())
        key_value.weight[-WIDTH:] = torch.eye(WIDTH)
        identity(attention.output)


@pytest.mark.parametrize("own", [None, 0.0, HALF])
@pytest.mark.parametrize("kind", ["attention", "cross", "relative_attention"])
def test_attention_drops_weights(kind, own):
    """At the model's rate unless it has one of its own."""
    for model_rate in (0.0, HALF):
        source = torch.eye(LENGTH).expand(ROWS, -1, -1)
        if kind == "cross":
            part = CrossAttentionConfig(heads=1, dropout=own).build(place(model_rate, source=WIDTH))
            each_its_own_value(part, part.key_value)
        elif kind == "attention":
            part = AttentionConfig(heads=1, dropout=own).build(place(model_rate))
            each_its_own_value(part, part.query_key_value)
        else:
            part = RelativeAttentionConfig(heads=1, dropout=own).build(place(model_rate))
            each_its_own_value(part, part.key_value)
        y = part(source, Context(source=source))[0]
        if (model_rate if own is None else own) == 0.0:
            assert_plain(y, 1 / LENGTH)
        else:
            assert_masked(y, 1 / LENGTH)
        assert_plain(part.eval()(source, Context(source=source))[0], 1 / LENGTH)


def test_short_convolutions_drop_taps_and_what_they_read():
    kernel = 4
    for config in (LightConvConfig, DynamicConvConfig):
        mixer = config(kernel=kernel, heads=16, weight_dropout=HALF).build(place())
        zero(mixer.taps if config is LightConvConfig else mixer.prediction.weight)
        taps = torch.cat([mixer.weight(ONES).flatten() for _ in range(40)])
        assert_masked(taps, 1 / kernel)
        assert_plain(mixer.eval().weight(ONES), 1 / kernel)
        # Nothing but taps is dropped at the model's rate: what goes in and comes out is the block's.
        mixer = config(kernel=1, heads=16, gate=False).build(place())
        identity(mixer.input)
        identity(mixer.output)
        assert_plain(mixer(ONES, Context())[0], 1.0)
        mixer = config(kernel=1, heads=16, gate=False, input_dropout=HALF).build(place(0.0))
        identity(mixer.input)
        identity(mixer.output)
        assert_masked(mixer(ONES, Context())[0], 1.0)
        assert_plain(mixer.eval()(ONES, Context())[0], 1.0)


def test_a_highway_drops_before_and_behind():
    part = Highway(WIDTH, place())
    zero(*part.parameters())
    nn.init.constant_(part.gate.bias, -50.0)  # carries all
    assert_masked(part(ONES, Context())[0], 1.0, times=2)
    assert_plain(part.eval()(ONES, Context())[0], 1.0)


def gates_open(convolution):
    """A gated convolution of one tap that gives back what comes in."""
    with torch.no_grad():
        convolution.direction.zero_()
        convolution.direction[:WIDTH, 0] = torch.eye(WIDTH)
        convolution.direction[WIDTH:, 0, 0] = 1.0
        convolution.magnitude.zero_()
        convolution.magnitude[:WIDTH] = 1.0
        convolution.bias.zero_()
        convolution.bias[WIDTH:] = 50.0


@pytest.mark.parametrize(("residual", "rest"), [("none", 0.0), ("sum", 1.0)])
def test_gated_convolutions_drop_what_each_reads_but_not_the_residual(residual, rest):
    for times in (1, 2):
        each = [{"kernel": 1, "width": WIDTH}] * times
        part = GatedCnnBlockConfig(kind="gated_cnn", convolutions=each, residual=residual).build(place())["mixer"]
        for convolution in part.convolutions:
            gates_open(convolution)
        assert_masked(part(ONES, Context())[0], 1.0, times=times, rest=rest)
        assert_plain(part.eval()(ONES, Context())[0], rest + 1)


@pytest.mark.parametrize("unit", ["channels", "elements"])
def test_temporal_convolutions_drop_behind_each_activation_but_not_the_residual(unit):
    part = TcnBlockConfig(kernel=3, dropout_of=unit).build(place())["mixer"]
    for convolution in part.convolutions:
        with torch.no_grad():
            convolution.direction.zero_()
            convolution.direction[:, 1] = torch.eye(WIDTH)  # the tap in the middle
            convolution.magnitude.fill_(1.0)
            convolution.bias.zero_()
    y = part(torch.ones(64, LENGTH, WIDTH), Context())[0]
    if unit == "channels":
        assert torch.equal(y, y[:, :1].expand_as(y))  # a channel is dropped in the whole row
        y = y[:, 0]
    else:
        assert not torch.equal(y, y[:, :1].expand_as(y))
    assert_masked(y, 1.0, times=2, rest=1.0)
    assert_plain(part.eval()(ONES, Context())[0], 2.0)


@pytest.mark.parametrize("convolutions", [1, 2])
@pytest.mark.parametrize("mlp", [False, True])
@pytest.mark.parametrize("reduce", ["dense", "max_pool"])
def test_windows_drop_what_each_convolution_reads_and_what_is_reduced(monkeypatch, convolutions, mlp, reduce):
    """Batch norms change every value in training: here the masks are counted where they are drawn."""
    from bakeoff.models.blocks import cnn

    drawn = []

    def counted(x, rate, training):
        if training and rate:
            drawn.append((tuple(x.shape), rate, x))
        return x

    monkeypatch.setattr(cnn, "dropout", counted)
    config = CnnBlockConfig(
        kind="cnn", window=4, kernels=[3, 1], convolutions=convolutions, mlp=mlp, reduce=reduce, window_dropout=0.1
    )
    part = config.build(BuildContext(width=6, causal=True, dropout=0.3))["mixer"]
    x = torch.randn(2, 5, 6)
    part(x, Context())
    windows, flat = ((4, 10, 6), 0.1), ((10, 24), 0.3)
    column = [windows] * convolutions * (2 if mlp else 1) + ([flat] if reduce == "dense" else [])
    assert [each[:2] for each in drawn] == column * 2
    torch.testing.assert_close(drawn[0][2][-1], 0.9 * x.flatten(0, 1) + 0.1 * part.places.weight[-1])
    drawn.clear()
    part.eval()(x, Context())
    assert drawn == []


def test_gen_cnn_drops_its_outputs():
    sizes = {"window": 6, "time_flow": [3]}
    config = GenCnnBlockConfig(kind="gen_cnn", width=WIDTH, alpha=sizes, beta=sizes)
    part = config.build(BuildContext(width=WIDTH, causal=True, dropout=HALF))["mixer"]
    for parameter in part.parameters():
        nn.init.zeros_(parameter)
    assert_masked(part(ONES, Context())[0], 0.5)  # sigmoid(0)
    assert_plain(part.eval()(ONES, Context())[0], 0.5)


def model(dropout=HALF, embedding=None, mixer=None, **others):
    block = {"norm": "post", "mixer": mixer or {"kind": "none"}, "ffn": {"width": WIDTH}}
    values = {
        "embedding": {"positions": "none", "norm": False, **(embedding or {})},
        "encoder": {"width": WIDTH, "layers": 1, "block": block},
        "dropout": dropout,
        **others,
    }
    return ModelConfig.parse(values, "test").build(50)


IDS = torch.arange(ROWS * LENGTH).view(ROWS, LENGTH) % 50


@pytest.mark.parametrize("own", [None, 0.0, HALF])
@pytest.mark.parametrize("model_rate", [0.0, HALF])
def test_embeddings_drop_the_sum(own, model_rate):
    """At the model's rate unless they have one of their own; the sum of tokens and the rest, after the norm."""
    tables = {"positions": "learned", "length": LENGTH, "segments": 2, "norm": True, "dropout": own}
    embedding = model(model_rate, tables).embedding
    for table in (embedding.tokens, embedding.positions, embedding.segments):
        nn.init.constant_(table.weight, 1.0)
    zero(embedding.norm.weight)
    nn.init.constant_(embedding.norm.bias, 5.0)
    if (model_rate if own is None else own) == 0.0:
        assert_plain(embedding(Row(IDS)), 5.0)
    else:
        assert_masked(embedding(Row(IDS)), 5.0)
    assert_plain(embedding.eval()(Row(IDS)), 5.0)


def test_sinusoids_are_dropped_with_the_tokens():
    embedding = model(embedding={"positions": "sinusoidal"}).embedding
    dropped = embedding(Row(IDS)) == 0
    plain = embedding.eval()(Row(IDS)) == 0
    assert int(plain.sum()) < 10
    assert float(dropped.float().mean()) == pytest.approx(0.5, abs=0.03)


def test_the_second_stream_is_dropped_when_it_begins():
    built = model(mixer={"kind": "relative_attention", "heads": 2})
    nn.init.constant_(built.query, 3.0)
    nn.init.constant_(built.embedding.tokens.weight, 1.0)
    positions = torch.arange(LENGTH).expand(ROWS, -1)
    queries = Queries(positions, torch.ones(ROWS, 2 * LENGTH, LENGTH, dtype=torch.bool))
    x, _ = built.stack_inputs(Row(IDS, queries=queries))
    assert_masked(x[:, :LENGTH], 1.0)
    assert_masked(x[:, LENGTH:], 3.0)
    assert not torch.equal(x[:, :LENGTH] == 0, x[:, LENGTH:] == 0)
    x, _ = built.eval().stack_inputs(Row(IDS, queries=queries))
    assert_plain(x[:, LENGTH:], 3.0)


def test_what_leaves_the_last_layer_is_dropped_if_the_model_says_so():
    for rate in (0.0, HALF):
        built = model(0.0, output_dropout=rate)
        zero(*built.encoder.parts["ffn"][0].norm.parameters())
        nn.init.constant_(built.encoder.parts["ffn"][0].norm.bias, 4.0)
        if rate:
            assert_masked(built(Row(IDS))[0], 4.0)
        else:
            assert_plain(built(Row(IDS))[0], 4.0)
        assert_plain(built.eval()(Row(IDS))[0], 4.0)


def test_heads_of_pre_training_drop_nothing():
    rows, table = torch.randn(7, WIDTH), torch.randn(50, WIDTH)
    for head in (
        TokenHead(WIDTH, WIDTH, 50, HeadTransform("gelu", 1e-5)),
        UntiedTokenHead(WIDTH, 50, bias=True),
        AdaptiveTokenHead(WIDTH, 50, [20], bias=True),
        SentenceHead(WIDTH, 3),
    ):
        assert torch.equal(head.train().scores(rows, table), head.eval().scores(rows, table))
