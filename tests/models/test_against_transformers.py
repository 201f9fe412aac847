"""The same weights give the same hidden states and scores as an independent implementation."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.training.pretraining_model import PretrainingModel

transformers = pytest.importorskip("transformers")


def copy_linear(target, *sources):
    target.weight.data = torch.cat([source.weight.data for source in sources])
    target.bias.data = torch.cat([source.bias.data for source in sources])


def randomise(module, deviation=0.2):
    """Weights far from their gentle start, norms and biases too, so that nothing can hide."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * deviation + (
            1.0 if parameter.dim() == 1 else 0.0
        )


@pytest.fixture(params=["right", "left"])
def inputs(request):
    """(3, 11) ids, segments, and which are tokens, with padding on either side."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 97, (3, 11), generator=generator)
    real = torch.arange(11) < torch.tensor([[11], [7], [4]])
    if request.param == "left":
        real = real.flip(1)
    segments = (torch.arange(11) > 5).long().expand(3, -1)
    return ids, segments, real


def copy_embedding(ours, theirs):
    ours.tokens.weight.data = theirs.word_embeddings.weight.data
    ours.positions.weight.data = theirs.position_embeddings.weight.data
    ours.segments.weight.data = theirs.token_type_embeddings.weight.data
    ours.norm.load_state_dict(theirs.LayerNorm.state_dict())


def copy_block(mixer, network, attention, projection, attention_norm, inner, outer, norm):
    """Ours (mixer and network) from theirs."""
    copy_linear(mixer.function.query_key_value, attention.query, attention.key, attention.value)
    copy_linear(mixer.function.output, projection)
    mixer.norm.load_state_dict(attention_norm.state_dict())
    copy_linear(network.function.input, inner)
    copy_linear(network.function.output, outer)
    network.norm.load_state_dict(norm.state_dict())


def copy_token_head(ours, transform, norm, bias):
    copy_linear(ours.transform, transform)
    ours.norm.load_state_dict(norm.state_dict())
    ours.bias.data = bias.data


def assert_same_scores(ours, theirs, inputs, relation, relation_logits):
    """Of the token head at every token, and of the sentence head."""
    ids, segments, real = inputs
    with torch.no_grad():
        expected = theirs(input_ids=ids, token_type_ids=segments, attention_mask=real.long())
        hidden = ours.model(ids, segments, real)
        weight = ours.model.embedding.table
        scores = ours.heads["mlm"].scores(hidden, weight)
        torch.testing.assert_close(scores[real], expected.prediction_logits[real], atol=1e-5, rtol=1e-5)
        found = ours.heads[relation].scores(hidden[:, 0], weight)
        torch.testing.assert_close(found, expected[relation_logits], atol=1e-5, rtol=1e-5)


def test_bert_with_its_heads(inputs):
    shape = {"vocab_size": 97, "hidden_size": 36, "num_hidden_layers": 3, "num_attention_heads": 3}
    config = transformers.BertConfig(**shape, intermediate_size=50, attn_implementation="eager")
    theirs = transformers.BertForPreTraining(config).eval()
    randomise(theirs)
    changes = {"model.encoder.width": 36, "model.encoder.layers": 3, "model.encoder.block.ffn.width": 50}
    recipe = shrink("bert-tiny", **changes, **{"model.encoder.block.mixer.heads": 3})
    ours = PretrainingModel(recipe, 97).eval()
    copy_embedding(ours.model.embedding, theirs.bert.embeddings)
    for layer, (mixer, network) in zip(theirs.bert.encoder.layer, ours.model.stack.layers, strict=True):
        after, last = layer.attention.output, layer.output
        inner = layer.intermediate.dense
        copy_block(
            mixer, network, layer.attention.self, after.dense, after.LayerNorm, inner, last.dense, last.LayerNorm
        )
    head = theirs.cls.predictions
    copy_token_head(ours.heads["mlm"], head.transform.dense, head.transform.LayerNorm, head.bias)
    copy_linear(ours.heads["nsp"].pooler, theirs.bert.pooler.dense)
    copy_linear(ours.heads["nsp"].output, theirs.cls.seq_relationship)
    assert_same_scores(ours, theirs, inputs, "nsp", "seq_relationship_logits")


def test_albert_with_its_heads(inputs):
    shape = {"vocab_size": 97, "embedding_size": 20, "hidden_size": 36, "num_hidden_layers": 4}
    config = transformers.AlbertConfig(
        **shape, num_attention_heads=3, intermediate_size=50, num_hidden_groups=2, attn_implementation="eager"
    )
    theirs = transformers.AlbertForPreTraining(config).eval()
    randomise(theirs)
    changes = {"model.encoder.width": 36, "model.encoder.layers": 4, "model.encoder.block.ffn.width": 50}
    changes |= {"model.encoder.block.mixer.heads": 3, "model.embedding.width": 20, "model.encoder.groups": 2}
    ours = PretrainingModel(shrink("albert-tiny", **changes), 97).eval()
    copy_embedding(ours.model.embedding, theirs.albert.embeddings)
    copy_linear(ours.model.embedding.projection, theirs.albert.encoder.embedding_hidden_mapping_in)
    parts, groups = ours.model.stack.parts, theirs.albert.encoder.albert_layer_groups
    for group, mixer, network in zip(groups, parts["mixer"], parts["ffn"], strict=True):
        (layer,) = group.albert_layers
        own, norm = layer.attention, layer.full_layer_layer_norm
        copy_block(mixer, network, own, own.dense, own.LayerNorm, layer.ffn, layer.ffn_output, norm)
    head = theirs.predictions
    copy_token_head(ours.heads["mlm"], head.dense, head.LayerNorm, head.bias)
    copy_linear(ours.heads["sop"].pooler, theirs.albert.pooler)
    copy_linear(ours.heads["sop"].output, theirs.sop_classifier.classifier)
    assert_same_scores(ours, theirs, inputs, "sop", "sop_logits")


def copy_gpt_block(ours, block):
    """Their linear maps are transposed, in the way of the original code."""
    mixer, network = ours
    for target, source in (
        (mixer.function.query_key_value, block.attn.c_attn),
        (mixer.function.output, block.attn.c_proj),
        (network.function.input, block.mlp.c_fc),
        (network.function.output, block.mlp.c_proj),
    ):
        target.weight.data, target.bias.data = source.weight.data.T.contiguous(), source.bias.data
    mixer.norm.load_state_dict(block.ln_1.state_dict())
    network.norm.load_state_dict(block.ln_2.state_dict())


def test_gpt(inputs):
    ids, _, real = inputs
    config = transformers.OpenAIGPTConfig(vocab_size=97, n_positions=40, n_embd=36, n_layer=3, n_head=3)
    theirs = transformers.OpenAIGPTLMHeadModel(config).eval()
    randomise(theirs)
    changes = {"model.decoder.width": 36, "model.decoder.layers": 3, "model.decoder.block.ffn.width": 144}
    recipe = shrink("gpt-tiny", **changes, **{"model.decoder.block.mixer.heads": 3, "model.embedding.length": 40})
    ours = PretrainingModel(recipe, 97).eval()
    embedding = ours.model.embedding
    embedding.tokens.weight.data = theirs.transformer.tokens_embed.weight.data
    embedding.positions.weight.data = theirs.transformer.positions_embed.weight.data

    for block, parts in zip(theirs.transformer.h, ours.model.stack.layers, strict=True):
        copy_gpt_block(parts, block)
    with torch.no_grad():
        scores = ours.heads["clm"].scores(ours.model(ids, real=real), embedding.tokens.weight)
        expected = theirs(input_ids=ids, attention_mask=real.long()).logits
        torch.testing.assert_close(scores[real], expected[real], atol=1e-5, rtol=1e-5)


def test_gpt2(inputs):
    ids, _, real = inputs
    config = transformers.GPT2Config(
        vocab_size=97, n_positions=40, n_embd=36, n_layer=3, n_head=3, attn_implementation="eager"
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    randomise(theirs)
    changes = {"model.decoder.width": 36, "model.decoder.layers": 3, "model.decoder.block.ffn.width": 144}
    recipe = shrink("gpt2-tiny", **changes, **{"model.decoder.block.mixer.heads": 3, "model.embedding.length": 40})
    ours = PretrainingModel(recipe, 97).eval()
    embedding = ours.model.embedding
    embedding.tokens.weight.data = theirs.transformer.wte.weight.data
    embedding.positions.weight.data = theirs.transformer.wpe.weight.data
    for block, parts in zip(theirs.transformer.h, ours.model.stack.layers, strict=True):
        copy_gpt_block(parts, block)
    ours.model.stack.norm.load_state_dict(theirs.transformer.ln_f.state_dict())
    with torch.no_grad():
        scores = ours.heads["clm"].scores(ours.model(ids, real=real), embedding.table)
        expected = theirs(input_ids=ids, attention_mask=real.long()).logits
        torch.testing.assert_close(scores[real], expected[real], atol=1e-5, rtol=1e-5)


def test_roberta_with_its_head(inputs):
    ids, _, real = inputs
    shape = {"vocab_size": 97, "hidden_size": 36, "num_hidden_layers": 3, "num_attention_heads": 3}
    config = transformers.RobertaConfig(
        **shape, intermediate_size=50, max_position_embeddings=42, type_vocab_size=1, attn_implementation="eager"
    )
    theirs = transformers.RobertaForMaskedLM(config).eval()
    randomise(theirs)
    changes = {"model.encoder.width": 36, "model.encoder.layers": 3, "model.encoder.block.ffn.width": 50}
    changes |= {"model.encoder.block.mixer.heads": 3, "model.embedding.length": 40}
    ours = PretrainingModel(shrink("roberta-tiny", **changes), 97).eval()
    embedding, their_embedding = ours.model.embedding, theirs.roberta.embeddings
    embedding.tokens.weight.data = their_embedding.word_embeddings.weight.data
    # Its first two rows are those of padding, and the one segment is a constant.
    positions = their_embedding.position_embeddings.weight.data[2:]
    embedding.positions.weight.data = positions + their_embedding.token_type_embeddings.weight.data
    embedding.norm.load_state_dict(their_embedding.LayerNorm.state_dict())
    for layer, (mixer, network) in zip(theirs.roberta.encoder.layer, ours.model.stack.layers, strict=True):
        after, last, inner = layer.attention.output, layer.output, layer.intermediate.dense
        copy_block(
            mixer, network, layer.attention.self, after.dense, after.LayerNorm, inner, last.dense, last.LayerNorm
        )
    head = theirs.lm_head
    copy_token_head(ours.heads["mlm"], head.dense, head.layer_norm, head.bias)
    with torch.no_grad():
        hidden, mask = ours.model(ids, real=real), real.long()
        scores = ours.heads["mlm"].scores(hidden, embedding.table)
        states = theirs.roberta(input_ids=ids, attention_mask=mask).last_hidden_state
        for found, expected in ((hidden, states), (scores, theirs(input_ids=ids, attention_mask=mask).logits)):
            largest = expected.abs().max()
            torch.testing.assert_close(found[real] / largest, expected[real] / largest, atol=1e-5, rtol=1e-5)
