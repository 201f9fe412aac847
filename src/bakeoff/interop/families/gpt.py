"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019): decoders with learned positions."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.interop.config_reader import ACTIVATIONS, THEIR_ACTIVATIONS, ConfigReader
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead, last_token_head, token_head
from bakeoff.interop.links import Link, linear, same, tied, transposed
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.recipe import Recipe
from bakeoff.tasks.task_config import HeadClass
from bakeoff.tokenizer.tokenizer import Tokenizer

HEAD = "head of clm"


def gpt_model(config: ConfigReader, norm: str, activation: str, inner: int, scaled: bool = True) -> dict[str, Any]:
    """The `model` of a recipe, from a config.json with GPT's keys.

    Args:
        config: the config.json.
        norm: pre or post.
        activation: our name of the activation.
        inner: width of the feed-forward networks.
        scaled: whether attention is divided by the square root of its key width.

    Raises:
        UserError: the config has a value that is not supported.
    """
    return {
        "embedding": {
            "positions": "learned",
            "length": config.whole("n_positions"),
            "norm": False,
            "dropout": config.number("embd_pdrop", 0.1),
        },
        "decoder": {
            "width": config.whole("n_embd"),
            "layers": config.whole("n_layer"),
            "block": {
                "kind": "transformer",
                "norm": norm,
                "mixer": {
                    "kind": "attention",
                    "heads": config.whole("n_head"),
                    "dropout": config.number("attn_pdrop", 0.1),
                    "scaled": scaled,
                },
                "ffn": {"width": inner, "activation": activation},
            },
        },
        "dropout": config.number("resid_pdrop", 0.1),
        "norm_epsilon": config.number("layer_norm_epsilon", 1e-5),
    }


def decoder_block(recipe: Recipe) -> tuple[TransformerBlockConfig, AttentionConfig]:
    """The block that all layers of a decoder without an encoder have, and the block's attention.

    Raises:
        NotSaid: the model is not a decoder alone, its layers differ or share weights, or have other blocks or mixers.
    """
    decoder = recipe.model.decoder
    if decoder is None or recipe.model.encoder is not None or recipe.model.directions == 2:
        raise NotSaid("it is not a decoder alone")
    if len(decoder.distinct()) != 1 or decoder.share != "none":
        raise NotSaid("its layers differ, or share parts")
    (block,) = decoder.distinct()
    if not isinstance(block, TransformerBlockConfig) or not isinstance(block.mixer, AttentionConfig):
        raise NotSaid("its layers are not a transformer's with attention")
    return block, block.mixer


def clm_of(recipe: Recipe) -> CausalLanguageModelConfig:
    """The causal objective of a recipe, whose head is the table of tokens or a table of its own.

    Raises:
        NotSaid: there is another objective, or the head is an adaptive softmax or has biases.
    """
    (objective, *others) = recipe.objective
    if others or not isinstance(objective, CausalLanguageModelConfig):
        kinds = " and ".join(part.kind for part in recipe.objective)
        raise NotSaid(f"it has learnt {kinds}, and the family has a head for clm alone")
    if objective.head == "adaptive" or objective.bias:
        raise NotSaid("its head is an adaptive softmax, or has a bias for each token")
    return objective


def gpt_config(recipe: Recipe) -> dict[str, Any]:
    """The config.json of a decoder in GPT's keys, without the activation.

    Raises:
        NotSaid: the model is not a decoder with attention.
    """
    _, mixer = decoder_block(recipe)
    model = recipe.model
    assert model.decoder is not None

    def rate(dropout: float | None) -> float:
        return model.dropout if dropout is None else dropout

    return {
        "n_positions": model.embedding.length,
        "n_embd": model.decoder.width,
        "n_layer": model.decoder.layers,
        "n_head": mixer.heads,
        "embd_pdrop": rate(model.embedding.dropout),
        "attn_pdrop": rate(mixer.dropout),
        "resid_pdrop": model.dropout,
        "layer_norm_epsilon": model.norm_epsilon,
    }


def gpt_layers(recipe: Recipe) -> Iterator[Link]:
    """Links of all layers; their linear layers have weights (in, out), the transpose of ours."""
    assert recipe.model.decoder is not None
    for number in range(recipe.model.decoder.layers):
        mixer, network = (f"model.decoder.parts.{part}.{number}" for part in ("mixer", "ffn"))
        theirs = f"transformer.h.{number}"
        for ours, their in (
            (f"{mixer}.function.query_key_value", f"{theirs}.attn.c_attn"),
            (f"{mixer}.function.output", f"{theirs}.attn.c_proj"),
            (f"{network}.function.input", f"{theirs}.mlp.c_fc"),
            (f"{network}.function.output", f"{theirs}.mlp.c_proj"),
        ):
            yield transposed(f"{ours}.weight", f"{their}.weight")
            yield same(f"{ours}.bias", f"{their}.bias")
        yield from linear(f"{mixer}.norm", f"{theirs}.ln_1")
        yield from linear(f"{network}.norm", f"{theirs}.ln_2")


class Gpt2(Family):
    """GPT-2; its head is the table of tokens or a table of its own."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    prefix: ClassVar[str] = "transformer."
    kinds: ClassVar[tuple[str, ...]] = ("byte_bpe",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"clm": ("logits",)}
    frames: ClassVar[bool] = False
    tables: ClassVar[tuple[str, str]] = ("wte", "wpe")
    """Names of the table of tokens and of the table of positions."""

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a GPT-2; its objective is the next token (clm)."""
        for key in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
            config.require(key, False)
        scaled = config.values.get("scale_attn_weights", True) is not False
        inner = config.whole("n_inner", 4 * config.whole("n_embd"))
        activation = config.choice("activation_function", ACTIVATIONS, "gelu_new")
        return {
            "paper": "Radford et al. 2019, Language Models are Unsupervised Multitask Learners",
            "model": gpt_model(config, "pre", activation, inner, scaled),
            **self.learnt(config),
        }

    def learnt(self, config: ConfigReader) -> dict[str, Any]:
        """The `input` and `objective` of the recipe."""
        untied = config.values.get("tie_word_embeddings", True) is False
        return {
            "input": {"format": "blocks", "length": min(config.whole("n_positions"), 1024), "isolate": False},
            "objective": [{"kind": "clm", "head": "untied" if untied else "tied"}],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a GPT-2, with its activation and whether the head is tied."""
        block, mixer = decoder_block(recipe)
        return {
            **gpt_config(recipe),
            "n_inner": block.ffn.width,
            "activation_function": THEIR_ACTIVATIONS[block.ffn.activation],
            "scale_attn_weights": mixer.scaled,
            "tie_word_embeddings": clm_of(recipe).head == "tied",
            "architectures": ["GPT2LMHeadModel"],
        }

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of both tables, the layers, and the norm after the last layer where the blocks need one."""
        tokens, positions = self.tables
        yield same("model.embedding.tokens.weight", f"transformer.{tokens}.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"transformer.{positions}.weight")
        yield from gpt_layers(recipe)
        if recipe.model.stack.distinct()[0].needs_final_norm:
            yield from linear("model.decoder.norm", "transformer.ln_f")

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """The link of the head: a table of its own, or the tied table of tokens."""
        if clm_of(recipe).head == "untied":
            yield same("heads.clm.output.weight", "lm_head.weight", vocabulary=True).may_miss(HEAD)
        else:
            yield tied("lm_head.weight", f"transformer.{self.tables[0]}.weight")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """A linear layer without bias on the last token for rows, a linear layer for tokens."""
        if form.of_rows:
            return last_token_head("GPT2", form, "model.decoder.norm.bias")
        return token_head("GPT2", form)

    @override
    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        return super().form(ending, recipe, config)._replace(pooling="last")

    @override
    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        return {"bos_token_id": tokenizer.opening, "eos_token_id": tokenizer.separator}


class Gpt(Gpt2):
    """GPT: post-norm, and its "gelu" is the approximation with tanh."""

    model_types: ClassVar[tuple[str, ...]] = ("openai-gpt",)
    kinds: ClassVar[tuple[str, ...]] = ("char_bpe",)
    tables: ClassVar[tuple[str, str]] = ("tokens_embed", "positions_embed")

    @override
    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        activation = config.choice("afn", {"gelu": "gelu_tanh", "relu": "relu"}, "gelu")
        return {
            "paper": "Radford et al. 2018, Improving Language Understanding by Generative Pre-Training",
            "model": gpt_model(config, "post", activation, 4 * config.whole("n_embd")),
            **self.learnt(config),
        }

    @override
    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """A linear layer without bias on the last token for rows; tokens have no class."""
        if not form.of_rows:
            raise NotSaid(f"it has no class for {form.ending}")
        assert recipe.model.decoder is not None
        last = recipe.model.decoder.layers - 1
        return last_token_head("OpenAIGPT", form, f"model.decoder.parts.ffn.{last}.norm.bias")

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        block, _ = decoder_block(recipe)
        if block.ffn.activation == "gelu":
            raise NotSaid("its activation is the exact gelu, and the family has the one with tanh")
        return {
            **gpt_config(recipe),
            "afn": "gelu" if block.ffn.activation == "gelu_tanh" else "relu",
            "tie_word_embeddings": clm_of(recipe).head == "tied",
            "architectures": ["OpenAIGPTLMHeadModel"],
        }
