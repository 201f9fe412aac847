"""Encoder-decoder models as their recipes have them, against BART and both versions of T5 with their own defaults."""

import pytest
import torch
from tests.models.parity import SIZES, VOCABULARY, Links, assert_equal, loss_of, randomise, sized

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row, Source

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

SOURCE, TARGET = 43, 37  # longer than the distances which T5's table tells apart one by one


@pytest.fixture(params=["evaluation", "training"])
def training(request):
    return request.param == "training"


@pytest.fixture
def rows():
    """Sources and targets of unequal lengths, padding on either side of the sources."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(5, VOCABULARY, (3, SOURCE), generator=generator)
    target = torch.randint(5, VOCABULARY, (3, TARGET), generator=generator)
    padding_mask = torch.ones(3, SOURCE, dtype=torch.bool)
    padding_mask[1, 8:] = False
    padding_mask[2, :4] = False
    return source, padding_mask, target


def link_attention(links, ours, query, key, value, output):
    links.linear(ours.query_key_value, query, key, value)
    links.linear(ours.output, output)


def link_cross(links, ours, query, key, value, output):
    links.linear(ours.query, query)
    links.linear(ours.key_value, key, value)
    links.linear(ours.output, output)


def check(ours, theirs, links, rows, objective):
    """Scores, loss and gradients of the whole; outside of training also the target in chunks."""
    source, padding_mask, target = rows
    labels = torch.randint(5, VOCABULARY, target.shape, generator=torch.Generator().manual_seed(4))
    unknown = torch.rand(target.shape, generator=torch.Generator().manual_seed(5)) < 0.2
    targets = {objective: ((~unknown).flatten().nonzero()[:, 0], labels[~unknown])}
    batch = Batch(Row(target, source=Source(source, padding_mask)), targets, tokens=target.numel())
    expected = theirs(
        input_ids=source,
        attention_mask=padding_mask.long(),
        decoder_input_ids=target,
        labels=labels.masked_fill(unknown, -100),
    )
    hidden, table = ours.model(batch.row)[0], ours.model.embedding.weight
    assert_equal(ours.heads[objective].scores(hidden, table), expected.logits, "scores")
    loss = loss_of(ours, batch)
    assert_equal(loss, expected.loss, "loss")
    loss.backward()
    expected.loss.backward()
    links.check_gradients()
    if not ours.training:
        state, chunks = ours.model.start(3), []
        for chunk in target.split([1, 4, TARGET - 5], dim=1):
            part, state = ours.model(Row(chunk, source=None if state.tokens else batch.row.source), state)
            chunks.append(part)
        assert_equal(ours.heads[objective].scores(torch.cat(chunks, dim=1), table), expected.logits, "in chunks")


def test_bart(rows, training):
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("layers", 3), ("attention_heads", SIZES["heads"]), ("ffn_dim", SIZES["inner"]))
    }
    config = transformers.BartConfig(
        vocab_size=VOCABULARY,
        d_model=SIZES["width"],
        attn_implementation="eager",
        **sides,
        **BART_RATES,
    )
    theirs = transformers.BartForConditionalGeneration(config).train(training)
    randomise(theirs)
    ours = PretrainingModel(sized("bart-base", **SIZES), VOCABULARY).train(training)
    links = Links(ours)
    links.tensor(ours.model.embedding.tokens.weight, theirs.model.shared.weight)
    model = theirs.model
    for own, side in ((ours.model.embedding, model.encoder), (ours.model.target_embedding, model.decoder)):
        # its first two rows are never used
        links.tensor(own.positions.weight, side.embed_positions.weight, join=lambda each: each[0][2:])
        links.linear(own.norm, side.layernorm_embedding)
    for stack, side in ((ours.model.encoder, model.encoder), (ours.model.decoder, model.decoder)):
        for layer, parts in zip(side.layers, stack.layers, strict=True):
            mixer, *cross, network = parts
            own = layer.self_attn
            link_attention(links, mixer.function, own.q_proj, own.k_proj, own.v_proj, own.out_proj)
            links.linear(mixer.norm, layer.self_attn_layer_norm)
            for part in cross:
                own = layer.encoder_attn
                link_cross(links, part.function, own.q_proj, own.k_proj, own.v_proj, own.out_proj)
                links.linear(part.norm, layer.encoder_attn_layer_norm)
            links.linear(network.function.input, layer.fc1)
            links.linear(network.function.output, layer.fc2)
            links.linear(network.norm, layer.final_layer_norm)
    check(ours, theirs, links, rows, "denoising")


BART_RATES = {"attention_dropout": 0.1, "activation_dropout": 0.1}
"""Of the released weights' configuration; theirs has none of either by default, and the paper says nothing."""


@pytest.mark.parametrize("gated", [False, True], ids=["original", "gated"])
def test_t5(rows, gated, training):
    marks = 100  # of the objective, in our table
    config = transformers.T5Config(
        vocab_size=VOCABULARY + marks,
        d_model=SIZES["width"],
        d_kv=SIZES["width"] // SIZES["heads"],
        num_heads=SIZES["heads"],
        num_layers=SIZES["layers"],
        d_ff=SIZES["inner"],
        attn_implementation="eager",
        **({"feed_forward_proj": "gated-gelu"} if gated else {}),
    )
    theirs = transformers.T5ForConditionalGeneration(config).train(training)
    theirs.config.scale_decoder_outputs = False  # scores are those of the table as they are (docs/fidelity.md)
    randomise(theirs, deviation=0.1)  # its scores are not scaled down
    changes = {}
    if gated:
        for side in ("encoder", "decoder"):
            changes |= {f"model.{side}.block.ffn.gate": True, f"model.{side}.block.ffn.activation": "gelu_tanh"}
    ours = PretrainingModel(sized("t5-base", **SIZES, **changes), VOCABULARY).train(training)
    links = Links(ours)
    links.tensor(ours.model.embedding.tokens.weight, theirs.shared.weight)
    for stack, side in ((ours.model.encoder, theirs.encoder), (ours.model.decoder, theirs.decoder)):
        links.linear(stack.bias.table, side.block[0].layer[0].SelfAttention.relative_attention_bias)
        links.linear(stack.norm, side.final_layer_norm)
        for layer, parts in zip(side.block, stack.layers, strict=True):
            for part, their in zip(parts, layer.layer, strict=True):
                links.linear(part.norm, their.layer_norm)
            own = layer.layer[0].SelfAttention
            link_attention(links, parts[0].function, own.q, own.k, own.v, own.o)
            if len(parts) == 3:
                own = layer.layer[1].EncDecAttention
                link_cross(links, parts[1].function, own.q, own.k, own.v, own.o)
            network, own = layer.layer[-1].DenseReluDense, parts[-1].function
            links.linear(own.input, network.wi_0 if gated else network.wi)
            if gated:
                links.linear(own.gate, network.wi_1)
            links.linear(own.output, network.wo)
    check(ours, theirs, links, rows, "span_corruption")
