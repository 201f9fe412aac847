"""Light and dynamic convolutions of fairseq (Wu et al. 2019): import alone, no export.

fairseq has no config.json. A folder to import has one with the checkpoint's `args`, `model_type` lightconv and
`vocab_size`; the checkpoint's `model` in safetensors; and fairseq's dict.txt (docs/import.md).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.bart import attention_links
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import NotSaid
from bakeoff.interop.links import Link, linear, same, tied
from bakeoff.recipe import Recipe

KINDS = {"lightweight": "light_conv", "dynamic": "dynamic_conv"}
"""Our mixers by fairseq's kinds of convolution."""


class Lightconv(Family):
    """fairseq's `lightconv` with one table of tokens for source, target and output."""

    model_types: ClassVar[tuple[str, ...]] = ("lightconv",)

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a translation model; kernel sizes are lists with one size for each layer."""
        if "decoder.embed_out" in tensors or config.values.get("share_all_embeddings") is False:
            raise UserError(
                f"{config.where}: share_all_embeddings: only models whose source, target and scores share one table "
                "can be imported"
            )
        config.require("encoder_normalize_before", False)
        config.require("decoder_normalize_before", False)
        config.require("weight_softmax", True)
        config.require("no_token_positional_embeddings", False)
        for key in ("encoder_learned_pos", "decoder_learned_pos"):
            config.require(key, False)
        dropout, attention = config.number("dropout", 0.1), config.number("attention_dropout", 0.0)
        width = config.whole("encoder_embed_dim")
        config.require("decoder_embed_dim", width)
        stacks: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            for key in ("conv_dim", "embed_dim"):
                config.require(f"{side}_{key}", width)
            layers = config.whole(f"{side}_layers")
            heads = config.whole(f"{side}_attention_heads")
            mixer = {
                "kind": config.choice(f"{side}_conv_type", KINDS, "dynamic"),
                "kernel": _kernels(config, side, layers),
                "heads": heads,
                "gate": config.values.get(f"{side}_glu", True) is not False,
                "weight_dropout": config.number("weight_dropout", 0.0),
                "input_dropout": config.number("input_dropout", 0.0),
            }
            stacks[side] = {
                "width": width,
                "layers": layers,
                "block": {
                    "kind": "transformer",
                    "norm": "post",
                    "mixer": mixer,
                    **({"cross": {"heads": heads, "dropout": attention}} if side == "decoder" else {}),
                    "ffn": {
                        "width": config.whole(f"{side}_ffn_embed_dim"),
                        "activation": "relu",
                        "dropout": config.number("relu_dropout", 0.0),
                    },
                },
            }
        return {
            "paper": "Wu et al. 2019, Pay Less Attention with Lightweight and Dynamic Convolutions, arXiv:1901.10430",
            "model": {
                "embedding": {"positions": "sinusoidal", "norm": False, "waves": "halves", "first_wave": 2},
                **stacks,
                "dropout": dropout,
                "norm_epsilon": 1e-5,
            },
            "input": {"format": "parallel", "length": 256},
            "objective": [
                {
                    "kind": "translation",
                    "label_smoothing": config.number("label_smoothing", 0.0),
                    "decoder_begins": ["separator"],
                }
            ],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """Raise NotSaid: transformers has no such family."""
        raise NotSaid("fairseq's models are read, and not written")

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the table of tokens and of the layers of encoder and decoder."""
        table = "encoder.embed_tokens.weight"
        yield same("model.embedding.tokens.weight", table, vocabulary=True)
        yield tied("decoder.embed_tokens.weight", table)
        for side, stack in recipe.model.stacks().items():
            for number, block in enumerate(stack.layer_blocks()):
                mixer, cross, network = (f"model.{side}.parts.{part}.{number}" for part in ("mixer", "cross", "ffn"))
                theirs = f"{side}.layers.{number}"
                yield from linear(f"{mixer}.function.input", f"{theirs}.linear1")
                if block.mixer_config.kind == "light_conv":
                    yield _taps(f"{mixer}.function.taps", f"{theirs}.conv.weight")
                else:
                    yield same(f"{mixer}.function.prediction.weight", f"{theirs}.conv.weight_linear.weight")
                yield from linear(f"{mixer}.function.output", f"{theirs}.linear2")
                norms = (
                    ("layer_norms.0", "layer_norms.1") if side == "encoder" else ("conv_layer_norm", "final_layer_norm")
                )
                yield from linear(f"{mixer}.norm", f"{theirs}.{norms[0]}")
                if side == "decoder":
                    yield from attention_links(f"{cross}.function", f"{theirs}.encoder_attn", cross=True)
                    yield from linear(f"{cross}.norm", f"{theirs}.encoder_attn_layer_norm")
                yield from linear(f"{network}.function.input", f"{theirs}.fc1")
                yield from linear(f"{network}.function.output", f"{theirs}.fc2")
                yield from linear(f"{network}.norm", f"{theirs}.{norms[1]}")

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """The link of the head, which is the table of tokens."""
        yield tied("decoder.output_projection.weight", "encoder.embed_tokens.weight")


def _taps(ours: str, theirs: str) -> Link:
    """Their kernels (H, 1, K) and ours (H, K); head h has the same channels on both sides (H heads, K kernel size)."""
    return Link((ours,), (theirs,), lambda each: [each[0][:, 0]], lambda each: [each[0][:, None]])


def _kernels(config: ConfigReader, side: str, layers: int) -> list[int]:
    """Kernel sizes, one for each layer, from a list or from the text of an option such as "[3,7,15]".

    Raises:
        UserError: the value is something else, has another number of sizes, or an even size in the encoder.
    """
    key = f"{side}_kernel_size_list"
    value = config.values.get(key, [3, 7, 15, 31, 31, 31, 31][:layers])
    if isinstance(value, str) and re.fullmatch(r"[\[\]\d, ]+", value):
        value = [int(each) for each in re.findall(r"\d+", value)]
    if not isinstance(value, Sequence) or not all(isinstance(each, int) and each > 0 for each in value):
        raise UserError(f"{config.where}: {key}: a list of sizes is wanted, not {value!r:.50}")
    sizes = list(value) * layers if len(value) == 1 else list(value)
    if len(sizes) != layers:
        raise UserError(f"{config.where}: {key}: {len(sizes)} sizes for {layers} layers; give one a layer")
    if side == "encoder" and (even := [size for size in sizes if size % 2 == 0]):
        raise UserError(
            f"{config.where}: {key}: {even[0]} is even, and even kernels look further ahead there, further back here"
        )
    return sizes
