"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.bert import ACTIVATIONS, THEIR_ACTIVATIONS
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead, last_token_head, token_head
from bakeoff.interop.links import Link, linear, same, tied, transposed
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.tokenizer import Tokenizer

HEAD = "head of clm"


def gpt_model(config: ConfigReader, norm: str, activation: str, inner: int, scaled: bool = True) -> dict[str, Any]:
    """Values of `model` of a decoder with GPT's keys."""
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
    """The block of a decoder without an encoder, where all layers have the same one, and its attention.

    Raises:
        NotSaid: it has another kind of block or mixer, or several.
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
    """The objective, whose head predicts from the table of tokens or from one of its own.

    Raises:
        NotSaid: it is another objective, or its head is another one.
    """
    (objective, *others) = recipe.objective
    if others or not isinstance(objective, CausalLanguageModelConfig):
        kinds = " and ".join(part.kind for part in recipe.objective)
        raise NotSaid(f"it has learnt {kinds}, and the family has a head for clm alone")
    if objective.head == "adaptive" or objective.bias:
        raise NotSaid("its head is an adaptive softmax, or has a bias for each token")
    return objective


def gpt_config(recipe: Recipe) -> dict[str, Any]:
    """GPT's keys for a decoder, its activation aside.

    Raises:
        NotSaid: it is not a decoder with attention and a head for the next token.
    """
    _, mixer = decoder_block(recipe)
    model = recipe.model
    assert model.decoder is not None

    def rate(own: float | None) -> float:
        return model.dropout if own is None else own

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
    """Links of all layers, whose linear maps lie the other way round."""
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
    """GPT-2; its head is the table of tokens, or one of its own."""

    model_types: ClassVar[tuple[str, ...]] = ("gpt2",)
    prefix: ClassVar[str] = "transformer."
    kinds: ClassVar[tuple[str, ...]] = ("byte_bpe",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"clm": ("logits",)}
    frames: ClassVar[bool] = False
    tables: ClassVar[tuple[str, str]] = ("wte", "wpe")
    """Names of the tables of tokens and of positions."""

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """GPT-2's recipe, whose objective is the next token."""
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
        """The recipe's rows and objective."""
        untied = config.values.get("tie_word_embeddings", True) is False
        return {
            "input": {"format": "blocks", "length": min(config.whole("n_positions"), 1024), "isolate": False},
            "objective": [{"kind": "clm", "head": "untied" if untied else "tied"}],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """GPT-2's config."""
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
        """Both tables and layers, and the norm behind the last."""
        tokens, positions = self.tables
        yield same("model.embedding.tokens.weight", f"transformer.{tokens}.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"transformer.{positions}.weight")
        yield from gpt_layers(recipe)
        if recipe.model.stack.distinct()[0].needs_final_norm:
            yield from linear("model.decoder.norm", "transformer.ln_f")

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """The head for the next token, where it is not the table of tokens."""
        if clm_of(recipe).head == "untied":
            yield same("heads.clm.output.weight", "lm_head.weight", vocabulary=True).may_miss(HEAD)
        else:
            yield tied("lm_head.weight", f"transformer.{self.tables[0]}.weight")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """A map without a bias of the last token, or a map of each token."""
        if form.of_rows:
            return last_token_head("GPT2", form, "model.decoder.norm.bias")
        return token_head("GPT2", form)

    @override
    def form(self, kind: str, recipe: Recipe, config: ConfigReader) -> HeadForm:
        return super().form(kind, recipe, config)._replace(pooling="last")

    @override
    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        return {"bos_token_id": tokenizer.opening, "eos_token_id": tokenizer.separator}


class Gpt(Gpt2):
    """GPT, whose norms stand behind the sums, and whose "gelu" is the approximation with tanh."""

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
        """A map without a bias of the last token; it has no other class."""
        if not form.of_rows:
            raise NotSaid(f"it has no class for {form.kind}")
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
