"""ModernBERT as its recipe has it, against transformers': scores, loss and all gradients, with dropout and without."""

import pytest
import torch
from tests.models.parity import VOCABULARY, Links, randomise
from tests.models.test_against_transformers import IGNORED, check

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.ops import windowed_attention
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

SIZES = {"hidden_size": 40, "num_hidden_layers": 5, "num_attention_heads": 5, "intermediate_size": 51}
OUR_SIZES = {
    "model.encoder.width": 40,
    "model.encoder.layers": 5,
    **{f"model.encoder.block.{place}.mixer.heads": 5 for place in range(3)},
    **{f"model.encoder.block.{place}.ffn.width": 51 for place in range(3)},
}


def link(ours, theirs):
    links = Links(ours)
    body = theirs.model
    links.tensor(ours.model.embedding.tokens.weight, body.embeddings.tok_embeddings.weight)
    links.linear(ours.model.embedding.norm, body.embeddings.norm)
    for (mixer, network), layer in zip(ours.model.stack.layers, body.layers, strict=True):
        links.linear(mixer.norm, layer.attn_norm)
        links.linear(mixer.function.query_key_value, layer.attn.Wqkv)
        links.linear(mixer.function.output, layer.attn.Wo)
        links.linear(network.norm, layer.mlp_norm)
        for place, inner in enumerate((network.function.input, network.function.gate)):
            for name, parameter in inner.named_parameters():
                links.tensor(
                    parameter,
                    getattr(layer.mlp.Wi, name),
                    join=lambda each, place=place: each[0].chunk(2)[place],
                )
        links.linear(network.function.output, layer.mlp.Wo)
    links.linear(ours.model.stack.norm, body.final_norm)
    head = ours.heads["mlm"]
    links.linear(head.transform, theirs.head.dense)
    links.linear(head.norm, theirs.head.norm)
    links.tensor(head.bias, theirs.decoder.bias)
    return links


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("length", "window", "biased"), [(11, 3, False), (160, 3, True)], ids=["few tokens", "in blocks, with biases"]
)
def test_modernbert_with_its_head(length, window, biased, side, training, monkeypatch):
    monkeypatch.setattr(torch, "float", torch.float64)  # of which they make the rates of the rotations
    if training:  # the dropout of weights that stands in here is one of whole rows of keys, not of blocks
        monkeypatch.setattr(windowed_attention, "WORTH", 10**6)
    keys = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
    config = transformers.ModernBertConfig(
        **SIZES,
        **dict.fromkeys(keys, biased),
        vocab_size=VOCABULARY,
        local_attention=2 * window,
        attention_dropout=0.1,  # theirs has one rate where the recipe's training had that of the output alone
        embedding_dropout=0.2,
        mlp_dropout=0.3,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
        cls_token_id=None,
        sep_token_id=None,
        attn_implementation="eager",
    )
    theirs = transformers.ModernBertForMaskedLM(config).train(training)
    randomise(theirs)
    changes = {f"model.encoder.block.{place}.mixer.dropout": 0.1 for place in range(3)}
    changes |= {f"model.encoder.block.{place}.ffn.dropout": 0.3 for place in range(3)}
    changes |= {"model.encoder.block.2.mixer.window": window, "model.embedding.dropout": 0.2}
    changes |= dict.fromkeys(("model.bias", "model.norm_bias", "objective.0.map_bias"), biased)
    ours = PretrainingModel(load_recipe("modernbert-base").changed(OUR_SIZES | changes), VOCABULARY).train(training)
    links = link(ours, theirs)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=generator)
    padding_mask = torch.arange(length) < torch.tensor([[length], [7], [4]])
    padding_mask = padding_mask.flip(1) if side == "left" else padding_mask
    chosen = padding_mask & (torch.rand(ids.shape, generator=generator) < 0.5)
    labels = torch.randint(5, VOCABULARY, ids.shape, generator=generator)
    batch = Batch(
        Row(ids, padding_mask=padding_mask),
        {"mlm": (chosen.flatten().nonzero()[:, 0], labels[chosen])},
        tokens=int(padding_mask.sum()),
    )
    expected = theirs(ids, padding_mask.long(), labels=labels.masked_fill(~chosen, IGNORED))
    check(ours, links, batch, expected, {"mlm": expected.logits})


def test_layers_are_those_of_the_paper():
    """Every third attends everywhere, the first among them without a norm; the others see 64 tokens on both sides."""
    blocks = load_recipe("modernbert-base").model.encoder.layer_blocks()
    theirs = transformers.ModernBertConfig()
    assert [block.mixer.window is None for block in blocks] == [each == "full_attention" for each in theirs.layer_types]
    assert {block.mixer.window for block in blocks} == {None, theirs.sliding_window}
    assert [block.mixer_norm for block in blocks] == [False] + [True] * 21
