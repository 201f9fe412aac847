"""llama.cpp's architectures by family: the recipes that it computes alike, and the keys of their sizes."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from bakeoff.interop.families.encoders import encoder_of
from bakeoff.interop.families.gpt import decoder_block
from bakeoff.interop.families.seq2seq import both_blocks, writing_of
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

Tensors = dict[str, NDArray[np.float32]]


class Architecture(ABC):
    """An architecture of llama.cpp; every `config` is the family's config.json for transformers."""

    name: ClassVar[str]
    """The family's name in `interop/families`."""
    member: ClassVar[str]
    """The architecture's name in `gguf.MODEL_ARCH`."""
    left: ClassVar[tuple[str, ...]] = ()
    """Prefixes of tensors that llama.cpp has no place for."""
    transposed: ClassVar[tuple[str, ...]] = ()
    """Suffixes of weights that transformers stores transposed."""
    command: ClassVar[str] = "llama-completion"
    """llama.cpp's program that runs the model."""

    def layers(self, recipe: Recipe) -> int:
        """The number of layers of the deepest stack."""
        return max(stack.layers for stack in recipe.model.stacks().values())

    @abstractmethod
    def block(self, recipe: Recipe) -> tuple[TransformerBlockConfig, AttentionConfig]:
        """The block of all layers, and its attention, of a recipe that the family can express."""

    def other_numbers(self, recipe: Recipe, tokenizer: Tokenizer) -> str | None:
        """The reason why llama.cpp computes other numbers than the family's class does; None: it computes the same."""
        block, mixer = self.block(recipe)
        if not block.ffn.activation.startswith("gelu"):
            return f"its networks have {block.ffn.activation}, and those of llama.cpp gelu"
        if not mixer.scaled:
            return "its attention is not scaled, and that of llama.cpp is"
        return None

    def changed(self, tensors: Tensors, recipe: Recipe) -> Tensors:
        """The tensors, changed where llama.cpp needs other values than transformers to compute the same."""
        return tensors

    def write(self, writer: Any, recipe: Recipe, config: dict[str, Any], gguf: Any) -> None:
        """Write the sizes of the model to `writer`, a `gguf.GGUFWriter`; `gguf` is the library."""
        writer.add_context_length(recipe.model.embedding.length)
        writer.add_embedding_length(recipe.model.stack.width)
        writer.add_feed_forward_length(self.block(recipe)[0].ffn.width)
        writer.add_block_count(recipe.model.stack.layers)
        writer.add_layer_norm_eps(recipe.model.norm_epsilon)


class BertArchitecture(Architecture):
    """BERT: an encoder without its heads."""

    name: ClassVar[str] = "bert"
    member: ClassVar[str] = "BERT"
    left: ClassVar[tuple[str, ...]] = ("cls.", "pooler.")
    command: ClassVar[str] = "llama-embedding"

    @override
    def block(self, recipe: Recipe) -> tuple[TransformerBlockConfig, AttentionConfig]:
        return encoder_of(recipe)[1:]

    @override
    def write(self, writer: Any, recipe: Recipe, config: dict[str, Any], gguf: Any) -> None:
        super().write(writer, recipe, config, gguf)
        writer.add_head_count(config["num_attention_heads"])
        writer.add_causal_attention(False)
        writer.add_token_type_count(config["type_vocab_size"])


class Gpt2Architecture(Architecture):
    """GPT-2: a decoder with its head."""

    name: ClassVar[str] = "gpt2"
    member: ClassVar[str] = "GPT2"
    transposed: ClassVar[tuple[str, ...]] = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")

    @override
    def block(self, recipe: Recipe) -> tuple[TransformerBlockConfig, AttentionConfig]:
        return decoder_block(recipe)

    @override
    def write(self, writer: Any, recipe: Recipe, config: dict[str, Any], gguf: Any) -> None:
        super().write(writer, recipe, config, gguf)
        writer.add_head_count(config["n_head"])


class T5Architecture(Architecture):
    """T5: an encoder and a decoder with tables of relative distances."""

    name: ClassVar[str] = "t5"
    member: ClassVar[str] = "T5"
    networks: ClassVar[tuple[tuple[str, bool], ...]] = (("relu", False), ("gelu_tanh", True))
    """Activation of the feed-forward networks and whether they have a gate, in versions 1.0 and 1.1."""
    farthest: ClassVar[int] = 128
    """The distance from which on all distances share a bucket; llama.cpp has no key for it."""

    @override
    def block(self, recipe: Recipe) -> tuple[TransformerBlockConfig, AttentionConfig]:
        block = both_blocks(recipe)[0]
        assert isinstance(block.mixer_config, AttentionConfig)
        return block, block.mixer_config

    @override
    def other_numbers(self, recipe: Recipe, tokenizer: Tokenizer) -> str | None:
        block, mixer = self.block(recipe)
        if (block.ffn.activation, block.ffn.gate) not in self.networks:
            network = f"{block.ffn.activation} {'with' if block.ffn.gate else 'without'} a gate"
            return f"its networks have {network}, and those of llama.cpp relu without one, or gelu_tanh with one"
        if mixer.distance != self.farthest:
            return f"its distances are alike from {mixer.distance} on, and those of llama.cpp from {self.farthest} on"
        stacks = recipe.model.stacks()
        if stacks["decoder"].layers > stacks["encoder"].layers:
            return "its decoder has more layers than its encoder, and llama.cpp fails to load such"
        if len(writing_of(recipe).prompt(tokenizer)) > 1:
            return "its decoder begins with two tokens, and that of llama.cpp with one"
        return None

    @override
    def changed(self, tensors: Tensors, recipe: Recipe) -> Tensors:
        """The tensors; a scaled head's factor D^-0.5 goes into the norm before it, since llama.cpp does not scale."""
        if writing_of(recipe).head != "scaled":
            return tensors
        name = "dec.output_norm.weight"
        return {**tensors, name: tensors[name] * np.float32(recipe.model.stack.width**-0.5)}

    @override
    def write(self, writer: Any, recipe: Recipe, config: dict[str, Any], gguf: Any) -> None:
        writer.add_context_length(recipe.input.length)  # the model has no limit; the key is required
        writer.add_embedding_length(config["d_model"])
        writer.add_feed_forward_length(config["d_ff"])
        writer.add_block_count(config["num_layers"])
        writer.add_decoder_block_count(config["num_decoder_layers"])
        writer.add_head_count(config["num_heads"])
        writer.add_key_length(config["d_kv"])
        writer.add_value_length(config["d_kv"])
        writer.add_relative_attn_buckets_count(config["relative_attention_num_buckets"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
        writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])


_ALL = (BertArchitecture(), Gpt2Architecture(), T5Architecture())
ARCHITECTURES: dict[str, Architecture] = {each.name: each for each in _ALL}
"""The architectures that can be written, by name of the family."""
