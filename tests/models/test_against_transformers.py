"""Encoders and language models as their recipes have them, against transformers' with its own defaults."""

import math

import pytest
import torch
from tests.models.parity import SIZES, VOCABULARY, Links, assert_equal, loss_of, marked, randomise, sized

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.row import Row

transformers = pytest.importorskip("transformers")
qwen3 = pytest.importorskip("transformers.models.qwen3.modeling_qwen3")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

LENGTH = 11
THEIR_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": SIZES["width"],
    "num_hidden_layers": SIZES["layers"],
    "num_attention_heads": SIZES["heads"],
    "intermediate_size": SIZES["inner"],
    "attn_implementation": "eager",  # the others draw their dropout out of sight
}
IGNORED = -100


@pytest.fixture(params=["right", "left"])
def inputs(request):
    """(3, 11) ids, segments, and which are tokens, with padding on either side."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (3, LENGTH), generator=generator)
    padding_mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [7], [4]])
    if request.param == "left":
        padding_mask = padding_mask.flip(1)
    segments = (torch.arange(LENGTH) > 5).long().expand(3, -1)
    return ids, segments, padding_mask


@pytest.fixture(params=["evaluation", "training"])
def training(request):
    return request.param == "training"


def masked(inputs, relation=None):
    """A batch with a few masked tokens, and the labels as transformers takes them."""
    ids, segments, padding_mask = inputs
    chosen = padding_mask & (torch.rand(ids.shape, generator=torch.Generator().manual_seed(2)) < 0.5)
    labels = torch.randint(5, VOCABULARY, ids.shape, generator=torch.Generator().manual_seed(4))
    targets = {"mlm": (chosen.flatten().nonzero()[:, 0], labels[chosen])}
    if relation is not None:
        targets[relation] = (torch.arange(3) * LENGTH, torch.tensor([1, 0, 1]))
    batch = Batch(Row(ids, segments if relation else None, padding_mask), targets, tokens=int(padding_mask.sum()))
    return batch, labels.masked_fill(~chosen, IGNORED)


def next_tokens(inputs):
    """A batch in which tokens predict the next one, and the labels as transformers takes them."""
    ids, _, padding_mask = inputs
    predicts = padding_mask[:, :-1] & padding_mask[:, 1:]
    rows = torch.nn.functional.pad(predicts, (0, 1)).flatten().nonzero()[:, 0]
    batch = Batch(
        Row(ids, padding_mask=padding_mask), {"clm": (rows, ids[:, 1:][predicts])}, tokens=int(padding_mask.sum())
    )
    return batch, ids.masked_fill(~torch.nn.functional.pad(predicts, (1, 0)), IGNORED)


def check(ours, links, batch, expected, logits):
    """Scores where a token is, loss and all gradients; `logits` are theirs for each head."""
    loss = loss_of(ours, batch)
    hidden, table = ours.model(batch.row)[0], ours.model.embedding.weight
    for name, scores in logits.items():
        if scores.dim() == 3:
            found = ours.heads[name].scores(hidden, table)
            assert_equal(found[batch.row.padding_mask], scores[batch.row.padding_mask], name)
        else:
            assert_equal(ours.heads[name].scores(hidden[:, 0], table), scores, name)
    assert_equal(loss, expected.loss, "loss")
    loss.backward()
    expected.loss.backward()
    links.check_gradients()


def link_embedding(links, ours, theirs):
    links.tensor(ours.tokens.weight, theirs.word_embeddings.weight)
    links.tensor(ours.positions.weight, theirs.position_embeddings.weight)
    links.tensor(ours.segments.weight, theirs.token_type_embeddings.weight)
    links.linear(ours.norm, theirs.LayerNorm)


def link_block(links, parts, attention, projection, attention_norm, inner, outer, norm):
    """Ours (mixer and network) from theirs."""
    mixer, network = parts
    links.linear(mixer.function.query_key_value, attention.query, attention.key, attention.value)
    links.linear(mixer.function.output, projection)
    links.linear(mixer.norm, attention_norm)
    links.linear(network.function.input, inner)
    links.linear(network.function.output, outer)
    links.linear(network.norm, norm)


def link_bert_blocks(links, ours, theirs):
    for layer, parts in zip(theirs.encoder.layer, ours.model.stack.layers, strict=True):
        after, last, inner = layer.attention.output, layer.output, layer.intermediate.dense
        link_block(links, parts, layer.attention.self, after.dense, after.LayerNorm, inner, last.dense, last.LayerNorm)


def link_token_head(links, ours, transform, norm, bias):
    links.linear(ours.transform, transform)
    links.linear(ours.norm, norm)
    links.tensor(ours.bias, bias)


def link_sentence_head(links, ours, pooler, output):
    links.linear(ours.pooler, pooler)
    links.linear(ours.output, output)


def test_bert_with_its_heads(inputs, training):
    theirs = transformers.BertForPreTraining(transformers.BertConfig(**THEIR_SIZES)).train(training)
    randomise(theirs)
    ours = PretrainingModel(sized("bert-base", **SIZES), VOCABULARY).train(training)
    links = Links(ours)
    link_embedding(links, ours.model.embedding, theirs.bert.embeddings)
    link_bert_blocks(links, ours, theirs.bert)
    head = theirs.cls.predictions
    link_token_head(links, ours.heads["mlm"], head.transform.dense, head.transform.LayerNorm, head.bias)
    link_sentence_head(links, ours.heads["nsp"], theirs.bert.pooler.dense, theirs.cls.seq_relationship)
    batch, labels = masked(inputs, "nsp")
    ids, segments, padding_mask = inputs
    expected = theirs(
        ids, padding_mask.long(), segments, labels=labels, next_sentence_label=batch.targets["nsp"][1], return_dict=True
    )
    check(
        ours,
        links,
        batch,
        expected,
        {"mlm": expected.prediction_logits, "nsp": expected.seq_relationship_logits},
    )


@pytest.mark.parametrize(
    ("name", "rate", "groups"), [("albert-base", 0.1, 1), ("albert-base", 0.1, 2), ("albert-base-v2", None, 1)]
)
def test_albert_with_its_heads(inputs, training, name, rate, groups):
    """Their default rates are those of version 2; version 1 was trained with 0.1."""
    rates = {} if rate is None else {"hidden_dropout_prob": rate, "attention_probs_dropout_prob": rate}
    sizes = THEIR_SIZES | {"embedding_size": 21, "num_hidden_layers": 4, "num_hidden_groups": groups}
    theirs = transformers.AlbertForPreTraining(transformers.AlbertConfig(**sizes, **rates)).train(training)
    randomise(theirs)
    shape = SIZES | {"layers": 4}
    changes = {"model.embedding.width": 21, "model.encoder.groups": groups}
    ours = PretrainingModel(sized(name, **shape, **changes), VOCABULARY).train(training)
    links = Links(ours)
    link_embedding(links, ours.model.embedding, theirs.albert.embeddings)
    links.linear(ours.model.embedding.projection, theirs.albert.encoder.embedding_hidden_mapping_in)
    parts = ours.model.stack.parts
    for group, *both in zip(theirs.albert.encoder.albert_layer_groups, parts["mixer"], parts["ffn"], strict=True):
        (layer,) = group.albert_layers
        own = layer.attention
        norm = layer.full_layer_layer_norm
        link_block(links, both, own, own.dense, own.LayerNorm, layer.ffn, layer.ffn_output, norm)
        if training and rate is not None:
            # Google's code (modeling.py, attention_ffn_block) drops the feed-forward network's output; theirs does not.
            layer.ffn_output.register_forward_hook(lambda module, given, output: marked(output, rate))
    head = theirs.predictions
    link_token_head(links, ours.heads["mlm"], head.dense, head.LayerNorm, head.bias)
    link_sentence_head(links, ours.heads["sop"], theirs.albert.pooler, theirs.sop_classifier.classifier)
    if training:
        theirs.sop_classifier.eval()  # Google's code has no dropout before the classifier of pre-training
    batch, labels = masked(inputs, "sop")
    ids, segments, padding_mask = inputs
    expected = theirs(ids, padding_mask.long(), segments, labels=labels, sentence_order_label=batch.targets["sop"][1])
    check(ours, links, batch, expected, {"mlm": expected.prediction_logits, "sop": expected.sop_logits})


def test_roberta_with_its_head(inputs, training):
    # Their default epsilon is BERT's; that of the published models (fairseq's norm, and roberta-base's config) is 1e-5.
    config = transformers.RobertaConfig(
        **THEIR_SIZES, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5
    )
    theirs = transformers.RobertaForMaskedLM(config).train(training)
    randomise(theirs)
    ours = PretrainingModel(sized("roberta-base", **SIZES), VOCABULARY)
    ours.train(training)
    links = Links(ours)
    embedding, their_embedding = ours.model.embedding, theirs.roberta.embeddings
    links.tensor(embedding.tokens.weight, their_embedding.word_embeddings.weight)
    # Its first two rows are those of padding, and the one segment is a constant.
    links.tensor(embedding.positions.weight, their_embedding.position_embeddings.weight, join=lambda each: each[0][2:])
    embedding.positions.weight.data += their_embedding.token_type_embeddings.weight.data
    links.linear(embedding.norm, their_embedding.LayerNorm)
    link_bert_blocks(links, ours, theirs.roberta)
    head = theirs.lm_head
    link_token_head(links, ours.heads["mlm"], head.dense, head.layer_norm, head.bias)
    batch, labels = masked(inputs)
    ids, _, padding_mask = inputs
    # Positions count tokens in theirs, places in ours.
    positions = torch.arange(2, LENGTH + 2).expand(3, -1)
    expected = theirs(ids, padding_mask.long(), position_ids=positions, labels=labels)
    check(ours, links, batch, expected, {"mlm": expected.logits})


def link_gpt_block(links, ours, block):
    """Their linear maps are transposed, in the way of the original code."""
    mixer, network = ours
    links.transposed(mixer.function.query_key_value, block.attn.c_attn)
    links.transposed(mixer.function.output, block.attn.c_proj)
    links.transposed(network.function.input, block.mlp.c_fc)
    links.transposed(network.function.output, block.mlp.c_proj)
    links.linear(mixer.norm, block.ln_1)
    links.linear(network.norm, block.ln_2)


GPT_SIZES = {"vocab_size": VOCABULARY, "n_embd": 35, "n_layer": 3, "n_head": 5}
OUR_GPT_SIZES = SIZES | {"inner": 4 * 35}


def test_gpt(inputs, training):
    theirs = transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(**GPT_SIZES)).train(training)
    randomise(theirs)
    ours = PretrainingModel(sized("gpt-base", **OUR_GPT_SIZES), VOCABULARY).train(training)
    links = Links(ours)
    links.tensor(ours.model.embedding.tokens.weight, theirs.transformer.tokens_embed.weight)
    links.tensor(ours.model.embedding.positions.weight, theirs.transformer.positions_embed.weight)
    for block, parts in zip(theirs.transformer.h, ours.model.stack.layers, strict=True):
        link_gpt_block(links, parts, block)
    batch, labels = next_tokens(inputs)
    expected = theirs(batch.row.ids, attention_mask=batch.row.padding_mask.long(), labels=labels)
    check(ours, links, batch, expected, {"clm": expected.logits})


def test_gpt2(inputs, training):
    config = transformers.GPT2Config(**GPT_SIZES, attn_implementation="eager")
    theirs = transformers.GPT2LMHeadModel(config).train(training)
    randomise(theirs)
    ours = PretrainingModel(sized("gpt2-base", **OUR_GPT_SIZES), VOCABULARY).train(training)
    links = Links(ours)
    links.tensor(ours.model.embedding.tokens.weight, theirs.transformer.wte.weight)
    links.tensor(ours.model.embedding.positions.weight, theirs.transformer.wpe.weight)
    for block, parts in zip(theirs.transformer.h, ours.model.stack.layers, strict=True):
        link_gpt_block(links, parts, block)
    links.linear(ours.model.stack.norm, theirs.transformer.ln_f)
    batch, labels = next_tokens(inputs)
    positions = torch.arange(LENGTH).expand(3, -1)
    expected = theirs(
        batch.row.ids, attention_mask=batch.row.padding_mask.long(), position_ids=positions, labels=labels
    )
    check(ours, links, batch, expected, {"clm": expected.logits})


def test_norms_are_those_of_qwen3():
    """Queries and keys normalised before their rotation, gradients included."""
    rows, width, heads, epsilon = 2, 12, 2, 1e-3
    config = qwen3.Qwen3Config(
        hidden_size=width,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        attention_bias=True,
        rms_norm_eps=epsilon,
        attn_implementation="eager",
    )
    theirs = qwen3.Qwen3Attention(config, layer_idx=0)
    randomise(theirs)
    made = AttentionConfig(heads=heads, positions="rotary", query_key_norm=True)
    ours = made.build(BuildContext(width=width, causal=True, dropout=0.0, norm_epsilon=epsilon))
    links = Links(ours)
    links.linear(ours.query_key_value, theirs.q_proj, theirs.k_proj, theirs.v_proj)
    links.linear(ours.output, theirs.o_proj)
    links.tensor(ours.query_norm.weight, theirs.q_norm.weight)
    links.tensor(ours.key_norm.weight, theirs.k_norm.weight)
    x = torch.randn(rows, LENGTH, width)
    angles = torch.arange(LENGTH)[:, None] * 10_000 ** (-torch.arange(0, 6, 2) / 6)
    angles = torch.cat([angles, angles], dim=-1)[None]  # theirs are made in single precision
    unseen = torch.full((LENGTH, LENGTH), -math.inf).triu(1)[None, None]
    expected = theirs(x, (angles.cos(), angles.sin()), unseen)[0]
    found = ours(x, Context())[0]
    assert_equal(found, expected)
    upstream = torch.randn_like(found)
    (found * upstream).sum().backward()
    (expected * upstream).sum().backward()
    links.check_gradients()
