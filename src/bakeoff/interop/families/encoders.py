"""What encoders of several families share: BERT's keys of config.json, the links of layers, the head of mlm."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from bakeoff.interop.config_reader import ACTIVATIONS, THEIR_ACTIVATIONS, ConfigReader
from bakeoff.interop.families.task_heads import NotSaid
from bakeoff.interop.links import Link, joined_linear, linear, same, zero_row
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.stack import StackConfig
from bakeoff.recipe import Recipe

HEAD = "head of mlm"
"""The head that a checkpoint of the body alone lacks, as remarks name it."""


def bert_model(config: ConfigReader, segments: int, norm_epsilon: float = 1e-12) -> dict[str, Any]:
    """The `model` of a recipe, from a config.json with BERT's keys; `segments` is the size of its segment table.

    Raises:
        UserError: the config has a value that is not supported.
    """
    for key in ("is_decoder", "add_cross_attention"):
        config.require(key, False)
    config.require("position_embedding_type", "absolute")
    dropout = config.number("hidden_dropout_prob", 0.1)
    attention = config.number("attention_probs_dropout_prob", 0.1)
    mixer = {"kind": "attention", "heads": config.whole("num_attention_heads")}
    if attention != dropout:
        mixer["dropout"] = attention
    ffn = {
        "width": config.whole("intermediate_size"),
        "activation": config.choice("hidden_act", ACTIVATIONS, "gelu"),
    }
    return {
        "embedding": {"positions": "learned", "length": config.whole("max_position_embeddings"), "segments": segments},
        "encoder": {
            "width": config.whole("hidden_size"),
            "layers": config.whole("num_hidden_layers"),
            "block": {"kind": "transformer", "norm": "post", "mixer": mixer, "ffn": ffn},
        },
        "dropout": dropout,
        "norm_epsilon": config.number("layer_norm_eps", norm_epsilon),
    }


def encoder_of(recipe: Recipe) -> tuple[StackConfig, TransformerBlockConfig, AttentionConfig]:
    """The encoder of a recipe, its block, and the block's attention.

    Raises:
        NotSaid: the model is not an encoder alone, or has other blocks or mixers, or several kinds of blocks.
    """
    encoder = recipe.model.encoder
    if encoder is None or recipe.model.decoder is not None:
        raise NotSaid("it is not an encoder alone")
    if len(encoder.distinct()) != 1:
        raise NotSaid("its layers have several kinds of blocks")
    (block,) = encoder.distinct()
    if not isinstance(block, TransformerBlockConfig):
        raise NotSaid(f"its blocks are of kind {block.kind}")
    if not isinstance(block.mixer, AttentionConfig):
        raise NotSaid(f"its mixers are of kind {block.mixer.kind}")
    return encoder, block, block.mixer


def bert_config(recipe: Recipe) -> dict[str, Any]:
    """The config.json of an encoder in BERT's keys, without the number of segments.

    Raises:
        NotSaid: the model is not an encoder with attention.
    """
    encoder, block, mixer = encoder_of(recipe)
    model = recipe.model
    return {
        "hidden_size": encoder.width,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": mixer.heads,
        "intermediate_size": block.ffn.width,
        "hidden_act": THEIR_ACTIVATIONS[block.ffn.activation],
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": model.dropout if mixer.dropout is None else mixer.dropout,
        "max_position_embeddings": model.embedding.length,
        "layer_norm_eps": model.norm_epsilon,
    }


def require_heads(recipe: Recipe, known: Collection[str]) -> set[str]:
    """The kinds of a recipe's objectives, all of which must be in `known`.

    Raises:
        NotSaid: another objective is among them, or the table of tokens has marks of an objective after its tokens.
    """
    kinds = {part.kind for part in recipe.objective}
    if others := sorted(kinds - set(known)):
        raise NotSaid(f"it has no head for {' and '.join(others)}")
    if recipe.extra_tokens:
        raise NotSaid("its table of tokens has marks of an objective after the tokenizer's")
    return kinds


def mlm_objective(config: ConfigReader, key: str = "hidden_act") -> dict[str, Any]:
    """The values of masked language modelling; `key` names the activation of its head."""
    activation = config.choice(key, ACTIVATIONS, "gelu")
    return {"kind": "mlm", "rate": 0.15, "activation": activation}


def segment_table(recipe: Recipe, theirs: str) -> Link:
    """The link of the segment table; for a recipe without segments, theirs gets one row of zeros."""
    if recipe.model.embedding.segments:
        return same("model.embedding.segments.weight", theirs)
    return zero_row(theirs, "model.embedding.norm.weight")


def encoder_layers(recipe: Recipe, theirs: str, parts: Sequence[str]) -> Iterator[Link]:
    """Links of all layers of an encoder.

    Args:
        recipe: a recipe whose encoder has transformer blocks.
        theirs: prefix of their names of a layer's tensors, with {} for the layer's number.
        parts: names after the prefix, in this order: query, key, value, output and norm of attention; first linear
            layer, second linear layer and norm of the feed-forward network.
    """
    assert recipe.model.encoder is not None
    for number in range(recipe.model.encoder.layers):
        yield from layer_links(number, theirs.format(number), parts)


def layer_links(number: int, theirs: str, parts: Sequence[str]) -> Iterator[Link]:
    """Links of one layer, or of one group of layers with shared weights; other arguments as of `encoder_layers`."""
    query, key, value, output, norm, inner, outer, last = (f"{theirs}.{part}" for part in parts)
    mixer, network = (f"model.encoder.parts.{part}.{number}" for part in ("mixer", "ffn"))
    yield from joined_linear(f"{mixer}.function.query_key_value", [query, key, value])
    yield from linear(f"{mixer}.function.output", output)
    yield from linear(f"{mixer}.norm", norm)
    yield from linear(f"{network}.function.input", inner)
    yield from linear(f"{network}.function.output", outer)
    yield from linear(f"{network}.norm", last)


BERT_LAYER = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)
"""Names of BERT's tensors in a layer, the `parts` of `encoder_layers`."""
