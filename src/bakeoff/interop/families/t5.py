"""T5 (Raffel et al. 2020), and version 1.1 with gated feed-forward networks and a head with a table of its own."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.seq2seq import SequenceToSequenceFamily, begins, both_blocks, writing_of
from bakeoff.interop.families.task_heads import NotSaid
from bakeoff.interop.links import Link, joined, same, tied
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

NETWORKS = {
    "relu": ("relu", False),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "gated-relu": ("relu", True),
    "gated-gelu": ("gelu_tanh", True),
}
"""Our activation, and whether there is a gate, by their names of feed-forward networks."""
MARKS = "<extra_id_{}>"


class T5(SequenceToSequenceFamily):
    """T5: an encoder and a decoder, each with one table of relative distances, in its first layer."""

    model_types: ClassVar[tuple[str, ...]] = ("t5",)
    kinds: ClassVar[tuple[str, ...]] = ("unigram",)
    wrapped: ClassVar[str] = "transformer."
    logits: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        ("span_corruption", "denoising", "deshuffling", "prefix_lm", "translation"), ("logits",)
    )

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a T5; its objective is span corruption."""
        if tensors and not any(name.startswith("decoder.") for name in tensors):
            raise UserError(
                f"{config.where}: an encoder of T5 without its decoder (as T5ForTokenClassification and T5EncoderModel "
                "have) has no counterpart here; the whole model has"
            )
        width, heads = config.whole("d_model"), config.whole("num_heads")
        head_width = config.whole("d_kv", 64)
        share = {} if head_width * heads == width else {"key_width": head_width, "value_width": head_width}
        dropout = config.number("dropout_rate", 0.1)
        mixer = {
            "kind": "attention",
            "heads": heads,
            "positions": "t5",
            "scaled": False,
            "buckets": config.whole("relative_attention_num_buckets", 32),
            "distance": config.whole("relative_attention_max_distance", 128),
            **share,
        }
        name = config.choice("feed_forward_proj", {each: each for each in NETWORKS}, "relu")
        activation, gate = NETWORKS[name]
        block = {
            "kind": "transformer",
            "norm": "pre",
            "mixer": mixer,
            "ffn": {"width": config.whole("d_ff"), "activation": activation, "gate": gate, "dropout": dropout},
        }
        layers = config.whole("num_layers")
        scaled = not any(config.values.get(key) is False for key in ("tie_word_embeddings", "scale_decoder_outputs"))
        head = "scaled" if scaled else "untied" if "lm_head.weight" in tensors else "tied"
        return {
            "paper": "Raffel et al. 2020, Exploring the Limits of Transfer Learning with a Unified Text-to-Text "
            "Transformer, arXiv:1910.10683",
            "model": {
                "embedding": {"positions": "none", "norm": False},
                "encoder": {"width": width, "layers": layers, "block": block},
                "decoder": {
                    "width": width,
                    "layers": config.whole("num_decoder_layers", layers),
                    "block": {**block, "cross": {"heads": heads, "scaled": False, **share}},
                },
                "dropout": dropout,
                "output_dropout": dropout,
                "norm": "rms",
                "norm_epsilon": config.number("layer_norm_epsilon", 1e-6),
                "bias": False,
            },
            "input": {"format": "blocks", "length": 568, "isolate": False},
            "objective": [
                {
                    "kind": "span_corruption",
                    "head": head,
                    "mark_names": MARKS,
                    "decoder_begins": begins(config, ["pad"]),
                }
            ],
        }

    @override
    def adapted(self, values: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
        """The values with as many marks as the tokenizer has; if it has none, they are added after its tokens."""
        count = 0
        while tokenizer.id_of(MARKS.replace("{}", str(count))) is not None:
            count += 1
        (objective,) = values["objective"]
        marks = {"marks": count} if count else {"mark_names": None}
        return {**values, "objective": [{**objective, **marks}]}

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        encoder, _ = both_blocks(recipe)
        objective = writing_of(recipe)
        model, mixer = recipe.model, encoder.mixer_config
        if not isinstance(mixer, AttentionConfig):
            raise NotSaid(f"its mixers are of kind {mixer.kind}")
        if objective.bias:
            raise NotSaid("its head has a bias for each token")
        assert model.encoder is not None
        assert model.decoder is not None
        pair = (encoder.ffn.activation, encoder.ffn.gate)
        name = next((each for each, network in NETWORKS.items() if network == pair), None)
        if name is None:
            raise NotSaid("its feed-forward network is gated with the exact gelu")
        head = {"scaled": {}, "untied": {"tie_word_embeddings": False}, "tied": {"scale_decoder_outputs": False}}
        return {
            "d_model": model.encoder.width,
            "d_kv": mixer.key_width or model.encoder.width // mixer.heads,
            "d_ff": encoder.ffn.width,
            "num_layers": model.encoder.layers,
            "num_decoder_layers": model.decoder.layers,
            "num_heads": mixer.heads,
            "relative_attention_num_buckets": mixer.buckets,
            "relative_attention_max_distance": mixer.distance,
            "dropout_rate": model.dropout,
            "layer_norm_epsilon": model.norm_epsilon,
            "feed_forward_proj": name,
            "is_encoder_decoder": True,
            **head[objective.head],
            "architectures": ["T5ForConditionalGeneration"],
        }

    @override
    def remarks(self, recipe: Recipe) -> list[str]:
        """Say that transformers' cache of a decoder has room for as many layers as the encoder has."""
        encoder, decoder = recipe.model.encoder, recipe.model.decoder
        if encoder is None or decoder is None or decoder.layers <= encoder.layers:
            return []
        return ["generate() of transformers needs use_cache=False, since the decoder has more layers than the encoder"]

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the table of tokens, and of each stack's table of distances, layers and last norm."""
        yield same("model.embedding.tokens.weight", "shared.weight", vocabulary=True)
        gate = both_blocks(recipe)[0].ffn.gate
        for side in ("encoder", "decoder"):
            yield tied(f"{side}.embed_tokens.weight", "shared.weight")
            table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
            yield same(f"model.{side}.bias.table.weight", table)
            yield same(f"model.{side}.norm.weight", f"{side}.final_layer_norm.weight")
            for number in range(recipe.model.stacks()[side].layers):
                parts = ("mixer", "cross", "ffn") if side == "decoder" else ("mixer", "ffn")
                for index, part in enumerate(parts):
                    ours, theirs = f"model.{side}.parts.{part}.{number}", f"{side}.block.{number}.layer.{index}"
                    yield same(f"{ours}.norm.weight", f"{theirs}.layer_norm.weight")
                    yield from _part(part, f"{ours}.function", theirs, gate)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """The link of the head: a table of its own, or the tied table of tokens."""
        objective = writing_of(recipe)
        if objective.head == "untied":
            yield same(f"heads.{objective.kind}.output.weight", "lm_head.weight", vocabulary=True)
        else:
            yield tied("lm_head.weight", "shared.weight")


def _part(part: str, ours: str, theirs: str, gate: bool) -> Iterator[Link]:
    if part == "mixer":
        names = [f"{theirs}.SelfAttention.{name}.weight" for name in ("q", "k", "v")]
        yield joined(f"{ours}.query_key_value.weight", names)
        yield same(f"{ours}.output.weight", f"{theirs}.SelfAttention.o.weight")
    elif part == "cross":
        names = [f"{theirs}.EncDecAttention.{name}.weight" for name in ("k", "v")]
        yield same(f"{ours}.query.weight", f"{theirs}.EncDecAttention.q.weight")
        yield joined(f"{ours}.key_value.weight", names)
        yield same(f"{ours}.output.weight", f"{theirs}.EncDecAttention.o.weight")
    else:
        network = f"{theirs}.DenseReluDense"
        yield same(f"{ours}.input.weight", f"{network}.{'wi_0' if gate else 'wi'}.weight")
        if gate:
            yield same(f"{ours}.gate.weight", f"{network}.wi_1.weight")
        yield same(f"{ours}.output.weight", f"{network}.wo.weight")
