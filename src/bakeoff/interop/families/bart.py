"""BART (Lewis et al. 2020): an encoder and a decoder with learned positions and one table of tokens."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.interop.config_reader import ACTIVATIONS, THEIR_ACTIVATIONS, ConfigReader
from bakeoff.interop.families.seq2seq import SequenceToSequenceFamily, begins, both_blocks, writing_of
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead
from bakeoff.interop.links import Link, behind, joined_linear, linear, same, tied
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.recipe import Recipe

UNUSED_POSITIONS = 2
"""Rows of a position table before the first position: fairseq starts after the id of its padding token, 1."""
FIXED = {
    "scale_embedding": False,
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
    "add_bias_logits": False,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
"""Keys of config.json, some of older versions, with the one value that is supported."""


def attention_links(ours: str, theirs: str, cross: bool) -> Iterator[Link]:
    """Links of an attention layer in fairseq's names: `q_proj`, `k_proj`, `v_proj` and `out_proj`."""
    query, key, value = (f"{theirs}.{name}_proj" for name in ("q", "k", "v"))
    if cross:
        yield from linear(f"{ours}.query", query)
        yield from joined_linear(f"{ours}.key_value", [key, value])
    else:
        yield from joined_linear(f"{ours}.query_key_value", [query, key, value])
    yield from linear(f"{ours}.output", f"{theirs}.out_proj")


class Bart(SequenceToSequenceFamily):
    """BART; its head is the table of tokens with a bias for each token."""

    model_types: ClassVar[tuple[str, ...]] = ("bart",)
    prefix: ClassVar[str] = "model."
    kinds: ClassVar[tuple[str, ...]] = ("byte_bpe",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        ("denoising", "deshuffling", "prefix_lm", "translation"), ("logits",)
    )

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a BART; its objective is denoising."""
        for key, value in FIXED.items():
            config.require(key, value)
        dropout, length = config.number("dropout", 0.1), config.whole("max_position_embeddings", 1024)
        attention = config.number("attention_dropout", 0.0)
        stacks: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            heads = config.whole(f"{side}_attention_heads")
            mixer = {"heads": heads, "dropout": attention}
            stacks[side] = {
                "width": config.whole("d_model"),
                "layers": config.whole(f"{side}_layers"),
                "block": {
                    "kind": "transformer",
                    "norm": "post",
                    "mixer": {"kind": "attention", **mixer},
                    **({"cross": mixer} if side == "decoder" else {}),
                    "ffn": {
                        "width": config.whole(f"{side}_ffn_dim"),
                        "activation": config.choice("activation_function", ACTIVATIONS, "gelu"),
                        "dropout": config.number("activation_dropout", 0.0),
                    },
                },
            }
        start = begins(config, ["separator", "start"])
        return {
            "paper": "Lewis et al. 2020, BART, arXiv:1910.13461",
            "model": {
                "embedding": {"positions": "learned", "length": length},
                **stacks,
                "dropout": dropout,
                "norm_epsilon": 1e-5,
            },
            "input": {"format": "blocks", "length": max(1, min(512, length) - 2), "isolate": False},
            "objective": [
                {
                    "kind": "denoising",
                    "bias": "final_logits_bias" in tensors,
                    "decoder_begins": start,
                    "source_start": True,
                }
            ],
        }

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        encoder, decoder = both_blocks(recipe)
        objective = writing_of(recipe)
        if objective.kind not in self.logits or objective.head != "tied":
            raise NotSaid(f"it has learnt {objective.kind} with a head that is {objective.head}")
        model, mixer = recipe.model, encoder.mixer_config
        assert model.encoder is not None
        assert model.decoder is not None
        if not isinstance(mixer, AttentionConfig) or not isinstance(decoder.mixer_config, AttentionConfig):
            raise NotSaid(f"its mixers are of kind {mixer.kind}")
        assert decoder.cross is not None
        dropout = mixer.dropout
        return {
            "d_model": model.encoder.width,
            "max_position_embeddings": model.embedding.length,
            "encoder_layers": model.encoder.layers,
            "decoder_layers": model.decoder.layers,
            "encoder_attention_heads": mixer.heads,
            "decoder_attention_heads": decoder.cross.heads,
            "encoder_ffn_dim": encoder.ffn.width,
            "decoder_ffn_dim": decoder.ffn.width,
            "activation_function": THEIR_ACTIVATIONS[encoder.ffn.activation],
            "dropout": model.dropout,
            "attention_dropout": model.dropout if dropout is None else dropout,
            "activation_dropout": encoder.ffn.dropout,
            "scale_embedding": False,
            "is_encoder_decoder": True,
            "architectures": ["BartForConditionalGeneration"],
        }

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """Raise NotSaid: BART's classes shift the decoder's input by one token, and their encoder reads `<s>`."""
        raise NotSaid("its decoder reads the text one token later there, and its source begins with <s>")

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the tables and layers of encoder and decoder."""
        table = "model.shared.weight"
        yield same("model.embedding.tokens.weight", table, vocabulary=True)
        for side, embedding in (("encoder", "embedding"), ("decoder", "target_embedding")):
            theirs = f"model.{side}"
            yield tied(f"{theirs}.embed_tokens.weight", table)
            yield behind(f"model.{embedding}.positions.weight", f"{theirs}.embed_positions.weight", UNUSED_POSITIONS)
            yield from linear(f"model.{embedding}.norm", f"{theirs}.layernorm_embedding")
            for number in range(recipe.model.stacks()[side].layers):
                mixer, cross, network = (f"model.{side}.parts.{part}.{number}" for part in ("mixer", "cross", "ffn"))
                layer = f"{theirs}.layers.{number}"
                yield from attention_links(f"{mixer}.function", f"{layer}.self_attn", cross=False)
                yield from linear(f"{mixer}.norm", f"{layer}.self_attn_layer_norm")
                if side == "decoder":
                    yield from attention_links(f"{cross}.function", f"{layer}.encoder_attn", cross=True)
                    yield from linear(f"{cross}.norm", f"{layer}.encoder_attn_layer_norm")
                yield from linear(f"{network}.function.input", f"{layer}.fc1")
                yield from linear(f"{network}.function.output", f"{layer}.fc2")
                yield from linear(f"{network}.norm", f"{layer}.final_layer_norm")

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the head: the tied table of tokens, and the biases of tokens if the objective has them."""
        objective = writing_of(recipe)
        if objective.bias:
            yield Link(
                (f"heads.{objective.kind}.bias",),
                ("final_logits_bias",),
                lambda each: [each[0][0]],
                lambda each: [each[0][None]],
                vocabulary=True,
            )
        yield tied("lm_head.weight", "model.shared.weight")
