"""LTG-BERT against its published code's equations, written out naively, and its scores against DeBERTa's."""

import math

import pytest
import torch
import torch.nn.functional as F
from tests.conftest import shrink, without_dropout
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers import disentangled_attention
from bakeoff.models.mixers.disentangled_attention import DisentangledAttentionConfig
from bakeoff.models.model import ModelConfig
from bakeoff.ops import attention as ops_attention
from bakeoff.row import Row

VOCABULARY, LENGTH, EPSILON = 60, 45, 1e-7


def published_bucket(distance, size, longest):
    """make_log_bucket_position of babylm/train/model.py, for one distance."""
    middle = size // 2
    if abs(distance) <= middle:
        return distance
    clamped = min(abs(distance), longest - 1)
    log = math.ceil(math.log(clamped / middle) / math.log((longest - 1) / middle) * (middle - 1)) + middle
    return log * (1 if distance > 0 else -1)


def normed(x):
    """A layer norm without scale and shift."""
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + EPSILON).sqrt()


def affine(x, norm):
    return normed(x) * norm.weight + norm.bias


def naive_scores(attention, x, vectors, heads, size, longest):
    """(H, T, T) of one row, a loop over pairs of tokens: c-c + c-p + p-c over the root of three heads' widths."""
    width = x.shape[-1] // heads
    query, key = attention.query_key(x).chunk(2, -1)
    far_query, far_key = attention.query_key(vectors).chunk(2, -1)
    scores = torch.zeros(heads, len(x), len(x), dtype=x.dtype)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        for i in range(len(x)):
            for j in range(len(x)):
                at = published_bucket(i - j, size, longest) + size - 1
                content = query[i, own] @ key[j, own]
                position = query[i, own] @ far_key[at, own] + key[j, own] @ far_query[at, own]
                scores[head, i, j] = (content + position) / math.sqrt(3 * width)
    return scores


def naive_layer(layer, x, vectors, heads, size, longest):
    """One row through attention and feed-forward network, each with its norms and its residual connection."""
    attention, ffn = (part.function for part in layer)
    weights = naive_scores(attention, normed(x), vectors, heads, size, longest).softmax(-1)
    value = attention.value(normed(x)).unflatten(-1, (heads, -1)).transpose(0, 1)
    x = x + affine(attention.output((weights @ value).transpose(0, 1).flatten(-2)), attention.norm)
    inner = F.gelu(F.linear(normed(x), ffn.input.weight), approximate="tanh") * F.linear(normed(x), ffn.gate.weight)
    return x + F.linear(normed(inner), ffn.output.weight)


def with_any_weights(recipe, vocabulary):
    """In float64 and evaluation mode; scales and biases, too, are none of those that change nothing."""
    torch.manual_seed(0)
    made = PretrainingModel(recipe, vocabulary).double().eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, 1.0 if parameter.dim() == 1 else 0.0, 0.3)
    return made


@pytest.fixture
def module():
    recipe = without_dropout(shrink("ltg-bert-xs", **{"input.length": LENGTH, "training.curriculum": []}))
    recipe = recipe.changed({"model.encoder.block.mixer.buckets": 6, "model.encoder.block.mixer.distance": 30})
    return with_any_weights(recipe, VOCABULARY)


@torch.no_grad()
def test_scores_are_those_of_the_published_equations(module):
    """Embedding, layers and head; rows that are longer than the farthest distance, one of them with padding."""
    ids = torch.randint(VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [20]])
    hidden = module.model(Row(ids, padding_mask=padding_mask))[0]
    head, table = module.heads["mlm"], module.model.embedding.weight
    found = head.scores(hidden.flatten(0, 1), table).unflatten(0, (2, -1))
    stack = module.model.encoder
    vectors = affine(stack.distances.table.weight, stack.distances.norm)
    for row, length in enumerate(padding_mask.sum(1).tolist()):
        x = normed(table[ids[row, :length]])
        for layer in stack.layers:
            x = naive_layer(layer, x, vectors, 2, 6, 30)
        expected = normed(F.gelu(head.transform(normed(x)))) @ table.T + head.bias
        torch.testing.assert_close(found[row, :length], expected, atol=1e-8, rtol=1e-8)


def test_no_norm_has_a_scale_but_those_behind_attention_and_of_the_distances():
    module = PretrainingModel(shrink("ltg-bert-xs"), VOCABULARY)
    scaled = {name.rpartition(".")[0] for name, _ in module.named_parameters() if ".norm." in name}
    layers = {f"model.encoder.parts.mixer.{layer}.function.norm" for layer in range(2)}
    assert scaled == layers | {"model.encoder.distances.norm"}
    ffn = [name for name, _ in module.named_parameters() if "ffn" in name]
    assert not any(name.endswith("bias") for name in ffn)
    assert module.model.encoder.parts["mixer"][0].function.output.bias is not None


def place(width=48, causal=False, dropout=0.0):
    return BuildContext(width=width, causal=causal, dropout=dropout, norm_epsilon=EPSILON)


def built(width=48, heads=3, **options):
    torch.manual_seed(0)
    config = DisentangledAttentionConfig(heads=heads, **options)
    mixer = config.build(place(width)).double().eval()
    for parameter in mixer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return mixer, torch.randn(2 * config.buckets - 1, width, dtype=torch.float64)


@pytest.mark.parametrize(("buckets", "distance"), [(32, 512), (6, 30), (4, 512), (7, 20), (32, 10)])
def test_buckets_are_those_of_the_published_code(buckets, distance):
    mixer, _ = built(buckets=buckets, distance=distance)
    far = torch.arange(-700, 701)
    found = mixer.bucket(far).tolist()
    assert max(found) <= buckets - 1
    assert found == [-each for each in reversed(found)]
    assert found == sorted(found)
    if distance - 1 > buckets // 2:
        assert found == [published_bucket(each, buckets, distance) for each in far.tolist()]


@torch.no_grad()
@pytest.mark.parametrize("length", [9, 32])  # DeBERTa's table has a row more, for what is farther
def test_what_is_mixed_is_what_debertas_attention_mixes(length):
    """The same weights, c2p and p2c with keys and queries of the distances made by those of the content."""
    deberta = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    transformers = pytest.importorskip("transformers")
    mixer, vectors = built(buckets=8, distance=32)
    torch.nn.init.zeros_(mixer.output.bias)
    mixer.output.weight.copy_(torch.eye(48))
    sizes = {"hidden_size": 48, "num_attention_heads": 3, "position_buckets": 8, "max_relative_positions": 32}
    kinds = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "share_att_key": True}
    theirs = deberta.DisentangledSelfAttention(transformers.DebertaV2Config(**sizes, **kinds)).double().eval()
    for name, part in (("weight", mixer.query_key.weight), ("bias", mixer.query_key.bias)):
        for own, projection in zip(part.chunk(2), (theirs.query_proj, theirs.key_proj), strict=True):
            getattr(projection, name).copy_(own)
        getattr(theirs.value_proj, name).copy_(getattr(mixer.value, name))
    x = torch.randn(2, length, 48, dtype=torch.float64)
    table = torch.cat([torch.zeros(1, 48, dtype=torch.float64), vectors])
    expected = theirs(x, torch.ones(2, 1, length, length, dtype=torch.bool), rel_embeddings=table)[0]
    found = mixer(x, Context(distances=vectors))[0]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)  # their scale is rounded to single precision


@torch.no_grad()
def test_a_decoder_reads_in_chunks_what_it_reads_at_once():
    """With distances that reach over the chunks, and nothing seen that comes after."""
    stack = {
        "width": 32,
        "layers": 2,
        "block": {
            "norm": "pre",
            "mixer": {"kind": "disentangled_attention", "heads": 2, "buckets": 4},
            "ffn": {"width": 48},
        },
    }
    torch.manual_seed(0)
    model = ModelConfig.parse({"embedding": {"positions": "none"}, "decoder": stack}, "test").build(50).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(50, (2, 30))
    expected = model(Row(ids))[0]
    state, found = model.start(2), []
    for chunk in ids.split([1, 7, 2, 20], dim=1):
        hidden, state = model(Row(chunk), state)
        found.append(hidden)
    torch.testing.assert_close(torch.cat(found, dim=1), expected)
    others = torch.cat([ids[:, :12], (ids[:, 12:] + 1) % 50], dim=1)
    assert torch.equal(model(Row(others))[0][:, :12], expected[:, :12])


@torch.no_grad()
def test_dropout_is_of_the_distances_vectors_and_of_the_weights(monkeypatch):
    """At the rate of the weights; what stands in for it here tells which is which."""
    config = DisentangledAttentionConfig(heads=3, dropout=0.3)
    torch.manual_seed(0)
    mixer = config.build(place(dropout=0.1)).double()
    vectors, x = torch.randn(63, 48, dtype=torch.float64), torch.randn(1, 20, 48, dtype=torch.float64)
    monkeypatch.setattr(disentangled_attention, "dropout", lambda y, rate, training: y * (1 + rate * training))
    monkeypatch.setattr(ops_attention, "drop", lambda y, rate, training: y * (1 + 10 * rate * training))
    found = mixer.train()(x, Context(distances=vectors))[0]
    expected = mixer.eval()(x, Context(distances=1.3 * vectors))[0]
    torch.testing.assert_close(found - mixer.output.bias, 4 * (expected - mixer.output.bias))


def test_flops_are_those_that_torch_counts():
    """But for the maps of the distances' vectors, which are made once a batch."""
    mixer, vectors = built()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        mixer(torch.randn(2, 30, 48, dtype=torch.float64), Context(distances=vectors))
    assert counter.get_total_flops() == 2 * 30 * mixer.flops_per_token(30) + 2 * 63 * 48 * 96


def test_layers_with_other_buckets_are_refused():
    block = {"mixer": {"kind": "disentangled_attention", "heads": 2}, "ffn": {"width": 48}}
    other = {**block, "mixer": {**block["mixer"], "buckets": 8}}
    stack = {"width": 32, "layers": 2, "block": [block, other]}
    with pytest.raises(UserError, match="share one table"):
        ModelConfig.parse({"encoder": stack}, "test").build(50)


def test_weights_begin_as_published():
    """Truncated normal distributions of deviation sqrt(2 / (5 D)), feed-forward maps smaller by sqrt(2 (1 + layer))."""
    recipe = shrink("ltg-bert-base", **{"model.encoder.width": 64, "model.encoder.layers": 3})
    torch.manual_seed(0)
    stack = PretrainingModel(recipe, 500).model.encoder
    cut = 0.8796256610342398  # of a normal distribution's deviation that is left by the cut at two deviations
    deviation = 0.0228217732 * cut
    for layer, (mixer, ffn) in enumerate(stack.layers):
        for linear in (mixer.function.query_key, mixer.function.value, mixer.function.output):
            assert float(linear.weight.detach().std()) == pytest.approx(deviation, rel=0.05)
        smaller = deviation / math.sqrt(2 * (1 + layer))
        for linear in (ffn.function.input, ffn.function.gate, ffn.function.output):
            assert float(linear.weight.detach().std()) == pytest.approx(smaller, rel=0.08)
    table = stack.distances.table.weight.detach()
    assert float(table.std()) == pytest.approx(math.sqrt(2 / (5 * 64)) * cut, rel=0.05)
    assert float(table.abs().max()) <= 2 * math.sqrt(2 / (5 * 64)) + 1e-7


@torch.no_grad()
@pytest.mark.parametrize("gate", ["none", "gelu"])
@pytest.mark.parametrize("inner_norm", [False, True])
def test_what_is_mixed_may_be_gated_and_normed(gate, inner_norm):
    """Token by token: the output map reads norm(mixed * gelu(W_G x + b_G)), as in GPT-BERT's Attention."""
    mixer, vectors = built(gate=gate, inner_norm=inner_norm)
    x = torch.randn(1, 9, 48, dtype=torch.float64)
    found = mixer(x, Context(distances=vectors))[0]
    value = mixer.value(x[0]).unflatten(-1, (3, -1)).transpose(0, 1)
    mixed = (naive_scores(mixer, x[0], vectors, 3, 32, 512).softmax(-1) @ value).transpose(0, 1).flatten(-2)
    for token in range(9):
        row = mixed[token]
        if gate != "none":
            opened = mixer.gate.weight @ x[0, token] + mixer.gate.bias
            row = row * opened * (1 + torch.erf(opened / math.sqrt(2))) / 2
        if inner_norm:
            row = affine(row, mixer.inner_norm)
        expected = mixer.output.weight @ row + mixer.output.bias
        torch.testing.assert_close(found[0, token], expected)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        mixer(x, Context(distances=vectors))
    assert counter.get_total_flops() == 9 * mixer.flops_per_token(9) + 2 * 63 * 48 * 96
