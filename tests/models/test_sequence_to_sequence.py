"""Encoder-decoder models against BART and both versions of T5, on random weights of odd sizes."""

import pytest
import torch
from tests.models.test_against_transformers import copy_linear, randomise

from bakeoff.models.inputs import Source
from bakeoff.models.model import ModelConfig

transformers = pytest.importorskip("transformers")

VOCABULARY = 97


@pytest.fixture
def rows():
    """Sources and targets of unequal lengths, padding on either side of the sources."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(5, VOCABULARY, (3, 11), generator=generator)
    target = torch.randint(5, VOCABULARY, (3, 7), generator=generator)
    real = torch.ones(3, 11, dtype=torch.bool)
    real[1, 8:] = False
    real[2, :4] = False
    return source, real, target


def build(block, cross, layers, width, **model):
    """A model whose encoder and decoder have this block."""
    stack = {"width": width, "layers": layers}
    values = {
        **model,
        "encoder": {**stack, "block": block},
        "decoder": {**stack, "block": {**block, "cross": cross}},
    }
    return ModelConfig.parse(values, "test").build(VOCABULARY).eval()


def copy_attention(ours, query, key, value, output):
    for target, *sources in ((ours.query_key_value, query, key, value), (ours.output, output)):
        copy_map(target, *sources)


def copy_cross(ours, query, key, value, output):
    for target, *sources in ((ours.query, query), (ours.key_value, key, value), (ours.output, output)):
        copy_map(target, *sources)


def copy_map(target, *sources):
    if target.bias is None:
        target.weight.data = torch.cat([source.weight.data for source in sources])
    else:
        copy_linear(target, *sources)


def test_bart(rows):
    source, real, target = rows
    config = transformers.BartConfig(
        vocab_size=VOCABULARY,
        d_model=36,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=50,
        decoder_ffn_dim=50,
        max_position_embeddings=40,
        attn_implementation="eager",
    )
    theirs = transformers.BartModel(config).eval()
    randomise(theirs)
    heads = {"heads": 3}
    block = {"mixer": {"kind": "attention", **heads}, "ffn": {"width": 50}, "norm": "post"}
    embedding = {"positions": "learned", "length": 40}
    ours = build(block, heads, 3, 36, embedding=embedding, norm_epsilon=1e-5)
    ours.embedding.tokens.weight.data = theirs.shared.weight.data
    for own, side in ((ours.embedding, theirs.encoder), (ours.target_embedding, theirs.decoder)):
        own.positions.weight.data = side.embed_positions.weight.data[2:]  # its first two rows are never used
        own.norm.load_state_dict(side.layernorm_embedding.state_dict())
    for stack, side in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        for layer, parts in zip(side.layers, stack.layers, strict=True):
            mixer, *cross, network = parts
            attention = layer.self_attn
            copy_attention(mixer.function, attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
            mixer.norm.load_state_dict(layer.self_attn_layer_norm.state_dict())
            for part in cross:
                attention = layer.encoder_attn
                copy_cross(part.function, attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj)
                part.norm.load_state_dict(layer.encoder_attn_layer_norm.state_dict())
            copy_linear(network.function.input, layer.fc1)
            copy_linear(network.function.output, layer.fc2)
            network.norm.load_state_dict(layer.final_layer_norm.state_dict())
    check(ours, rows, theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).last_hidden_state)


@pytest.mark.parametrize("gated", [False, True], ids=["original", "gated"])
def test_t5(rows, gated):
    source, real, target = rows
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=36,
        d_kv=12,
        num_heads=3,
        num_layers=3,
        d_ff=50,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
        feed_forward_proj="gated-gelu" if gated else "relu",
    )
    theirs = transformers.T5Model(config).eval()
    randomise(theirs, deviation=0.1)  # its scores are not scaled down
    heads = {"heads": 3, "scaled": False}
    block = {
        "mixer": {"kind": "attention", "positions": "t5", "buckets": 8, "distance": 6, **heads},
        "ffn": {"width": 50, "activation": "gelu_tanh" if gated else "relu", "gate": gated},
        "norm": "pre",
    }
    embedding = {"positions": "none", "norm": False}
    ours = build(block, heads, 3, 36, embedding=embedding, norm="rms", norm_epsilon=1e-6, bias=False)
    ours.embedding.tokens.weight.data = theirs.shared.weight.data
    for stack, side in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        stack.bias.table.weight.data = side.block[0].layer[0].SelfAttention.relative_attention_bias.weight.data
        stack.norm.load_state_dict(side.final_layer_norm.state_dict())
        for layer, parts in zip(side.block, stack.layers, strict=True):
            for part, their in zip(parts, layer.layer, strict=True):
                part.norm.load_state_dict(their.layer_norm.state_dict())
            attention = layer.layer[0].SelfAttention
            copy_attention(parts[0].function, attention.q, attention.k, attention.v, attention.o)
            if len(parts) == 3:
                attention = layer.layer[1].EncDecAttention
                copy_cross(parts[1].function, attention.q, attention.k, attention.v, attention.o)
            network, own = layer.layer[-1].DenseReluDense, parts[-1].function
            if gated:
                copy_map(own.input, network.wi_0)
                copy_map(own.gate, network.wi_1)
            else:
                copy_map(own.input, network.wi)
            copy_map(own.output, network.wo)
    check(ours, rows, theirs(input_ids=source, attention_mask=real.long(), decoder_input_ids=target).last_hidden_state)


def check(ours, rows, expected):
    """The whole pass, and the target in chunks."""
    source, real, target = rows
    with torch.no_grad():
        found = ours(target, source=Source(source, real))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        state = ours.start(3, Source(source, real))
        chunks = []
        for chunk in target.split([1, 4, 2], dim=1):
            hidden, state = ours.extend(chunk, state)
            chunks.append(hidden)
        torch.testing.assert_close(torch.cat(chunks, dim=1), expected, atol=1e-5, rtol=1e-5)
