"""BERT (Devlin et al. 2019), and models published under its `model_type`: Chinese-BERT-wwm, StructBERT, ..."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead, row_head, token_head
from bakeoff.interop.links import Link, joined_linear, linear, same, tied, zero_row
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.stack import StackConfig
from bakeoff.recipe import Recipe

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
}
"""Our names of activations by theirs."""
THEIR_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_tanh": "gelu_new"}
"""Their names of activations by ours."""
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
        NotSaid: another objective is among them, or the table of tokens has marks of an objective behind its tokens.
    """
    kinds = {part.kind for part in recipe.objective}
    if others := sorted(kinds - set(known)):
        raise NotSaid(f"it has no head for {' and '.join(others)}")
    if recipe.extra_tokens:
        raise NotSaid("its table of tokens has marks of an objective behind the tokenizer's")
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
        parts: names behind the prefix, in this order: query, key, value, output and norm of attention; first linear
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


class Bert(Family):
    """BERT; heads mlm and nsp."""

    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    prefix: ClassVar[str] = "bert."
    kinds: ClassVar[tuple[str, ...]] = ("wordpiece",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {
        "mlm": ("prediction_logits", "logits"),
        "nsp": ("seq_relationship_logits",),
    }

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a BERT; nsp is an objective if `tensors` hold a pooler, which it alone trains, or are empty."""
        pairs = not tensors or any(name.startswith(("bert.pooler.", "cls.seq_relationship.")) for name in tensors)
        length = config.whole("max_position_embeddings")
        return {
            "paper": "Devlin et al. 2019, BERT, arXiv:1810.04805",
            "model": bert_model(config, config.whole("type_vocab_size", 2)),
            "input": {"format": "segment_pair" if pairs else "full_sentences", "length": min(length, 512)},
            "objective": [mlm_objective(config), *([{"kind": "nsp"}] if pairs else [])],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a BERT; a recipe without segments has one segment there, whose row is zeros."""
        kinds = require_heads(recipe, ("mlm", "nsp"))
        architecture = "BertForPreTraining" if "nsp" in kinds else "BertForMaskedLM"
        segments = recipe.model.embedding.segments
        return {**bert_config(recipe), "type_vocab_size": max(1, segments), "architectures": [architecture]}

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding and the layers."""
        embeddings = "bert.embeddings"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight")
        yield segment_table(recipe, f"{embeddings}.token_type_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        yield from encoder_layers(recipe, "bert.encoder.layer.{}", BERT_LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head, the pooler and the nsp head."""
        kinds = {part.kind for part in recipe.objective}
        if "mlm" in kinds:
            head = "cls.predictions"
            for link in (
                *linear("heads.mlm.transform", f"{head}.transform.dense"),
                *linear("heads.mlm.norm", f"{head}.transform.LayerNorm"),
                same("heads.mlm.bias", f"{head}.bias", vocabulary=True),
            ):
                yield link.may_miss(HEAD)
            yield tied(f"{head}.decoder.weight", "bert.embeddings.word_embeddings.weight")
            yield tied(f"{head}.decoder.bias", f"{head}.bias")
        if "nsp" in kinds:
            for link in linear("heads.nsp.pooler", "bert.pooler.dense"):
                yield link.may_miss("pooler")
            for link in linear("heads.nsp.output", "cls.seq_relationship"):
                yield link.may_miss("head of nsp")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """The pooler and a linear layer for rows, a linear layer for tokens."""
        if form.of_rows:
            return row_head("Bert", form, "bert.pooler.dense", "classifier")
        return token_head("Bert", form)
