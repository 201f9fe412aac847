"""ModernBERT (Warner et al. 2024): rotary positions with two bases; two of three layers attend within a window."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ACTIVATIONS, THEIR_ACTIVATIONS, ConfigReader
from bakeoff.interop.families.encoders import HEAD, mlm_objective, require_heads
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead
from bakeoff.interop.links import Link, linear, of_linear, parted, same, tied
from bakeoff.models.blocks.transformer import TransformerBlockConfig
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.recipe import Recipe
from bakeoff.tasks.task_config import HeadClass
from bakeoff.tokenizer.tokenizer import Tokenizer

LayerType = Literal["full_attention", "sliding_attention"]
FULL: LayerType = "full_attention"
SLIDING: LayerType = "sliding_attention"
BASES = {FULL: 160_000.0, SLIDING: 10_000.0}
"""Bases of rotary positions for a config without such keys."""
OLD_BASES = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
"""Keys of the bases in configs of transformers 4, which the published models have."""
POOLINGS = {"cls": "cls", "mean": "mean"}
"""The poolings of the task heads, by their key `classifier_pooling`."""
HALF = "sliding_window"
"""A key for the tokens that are seen on each side, half of `local_attention`."""
REGULAR = "global_attn_every_n_layers"
"""Their key for N, where every N-th layer, from the first on, has full attention."""


class ModernBert(Family):
    """ModernBERT; head mlm, with whose linear layer and norm the task heads begin, too."""

    model_types: ClassVar[tuple[str, ...]] = ("modernbert",)
    prefix: ClassVar[str] = "model."
    kinds: ClassVar[tuple[str, ...]] = ("byte_bpe",)
    transforms: ClassVar[bool] = True
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"mlm": ("logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a ModernBERT; its rows have `max_position_embeddings` tokens, at most 1,024."""
        for key, value in (("decoder_bias", True), ("tie_word_embeddings", True), ("rope_scaling", None)):
            config.require(key, value)
        attention, embedding, inner = (
            config.number(f"{key}_dropout", 0.0) for key in ("attention", "embedding", "mlp")
        )
        bias, ffn_bias = (_truth(config, f"{key}_bias", False) for key in ("attention", "mlp"))
        ffn: dict[str, Any] = {
            "width": config.whole("intermediate_size", 1152),
            "activation": config.choice("hidden_activation", ACTIVATIONS, "gelu"),
            "gate": True,
            "dropout": inner,
        }
        if ffn_bias != bias:
            ffn["bias"] = ffn_bias
        mixers = _mixers(config)
        block: dict[str, Any] = {"kind": "transformer", "norm": "pre", "ffn": ffn}
        if attention:
            block["mixer_dropout"] = attention
            mixers = {kind: mixer | {"dropout": attention} for kind, mixer in mixers.items()}
        return {
            "paper": "Warner et al. 2024, ModernBERT, arXiv:2412.13663",
            "model": {
                "embedding": {"positions": "none", **({"dropout": embedding} if embedding else {})},
                "encoder": {
                    "width": config.whole("hidden_size", 768),
                    "layers": config.whole("num_hidden_layers", 22),
                    "block": _blocks(_layer_types(config), mixers, block),
                },
                "dropout": 0.0,
                "norm_epsilon": config.number("norm_eps", 1e-5),
                "norm_bias": _truth(config, "norm_bias", False),
                "bias": bias,
            },
            "input": {
                "format": "full_sentences",
                "length": min(config.whole("max_position_embeddings", 8192), 1024),
            },
            "objective": [
                {
                    **mlm_objective(config, "classifier_activation"),
                    "rate": 0.3,
                    "map_bias": _truth(config, "classifier_bias", False),
                }
            ],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a ModernBERT, in the keys of transformers 5 and, where they can express it, also of 4."""
        require_heads(recipe, ("mlm",))
        model = recipe.model
        mixers, block = _attention_of(recipe)
        encoder = model.encoder
        assert encoder is not None
        (objective,) = recipe.objective
        assert isinstance(objective, MaskedLanguageModelConfig)
        types = [FULL if mixer.window is None else SLIDING for mixer in mixers]
        first = dict(zip(types, mixers, strict=True))  # layers of one kind are alike, else `recipe` gives another model
        bases = {kind: first[kind].rotary_base if kind in first else base for kind, base in BASES.items()}
        rate = mixers[0].dropout
        values: dict[str, Any] = {
            "hidden_size": encoder.width,
            "num_hidden_layers": encoder.layers,
            "num_attention_heads": mixers[0].heads,
            "intermediate_size": block.ffn.width,
            "hidden_activation": THEIR_ACTIVATIONS[block.ffn.activation],
            "attention_dropout": model.dropout if rate is None else rate,
            "embedding_dropout": model.dropout if model.embedding.dropout is None else model.embedding.dropout,
            "mlp_dropout": block.ffn.dropout,
            "attention_bias": model.bias,
            "mlp_bias": model.bias if block.ffn.bias is None else block.ffn.bias,
            "norm_bias": model.norm_bias,
            "norm_eps": model.norm_epsilon,
            "classifier_bias": objective.map_bias,
            "classifier_activation": THEIR_ACTIVATIONS[objective.activation],
            "layer_types": types,
            "rope_parameters": {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()},
            **{OLD_BASES[kind]: base for kind, base in bases.items()},
            "architectures": ["ModernBertForMaskedLM"],
        }
        if SLIDING in first:
            values["local_attention"] = 2 * (first[SLIDING].window or 0)
        if (every := _regular(types)) is not None:
            values[REGULAR] = every
        return values

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding, the layers and the norm after the last layer."""
        model, encoder = recipe.model, recipe.model.encoder
        assert encoder is not None
        block = encoder.layer_blocks()[0]
        assert isinstance(block, TransformerBlockConfig)
        ffn_bias = model.bias if block.ffn.bias is None else block.ffn.bias
        yield same("model.embedding.tokens.weight", "model.embeddings.tok_embeddings.weight", vocabulary=True)
        yield from linear("model.embedding.norm", "model.embeddings.norm", model.norm_bias)
        for number in range(encoder.layers):
            mixer, network = (f"model.encoder.parts.{part}.{number}" for part in ("mixer", "ffn"))
            theirs = f"model.layers.{number}"
            if number:
                yield from linear(f"{mixer}.norm", f"{theirs}.attn_norm", model.norm_bias)
            yield from linear(f"{mixer}.function.query_key_value", f"{theirs}.attn.Wqkv", model.bias)
            yield from linear(f"{mixer}.function.output", f"{theirs}.attn.Wo", model.bias)
            yield from linear(f"{network}.norm", f"{theirs}.mlp_norm", model.norm_bias)
            for name in of_linear(ffn_bias):
                inner = [f"{network}.function.{part}.{name}" for part in ("input", "gate")]
                yield parted(inner, f"{theirs}.mlp.Wi.{name}")
            yield from linear(f"{network}.function.output", f"{theirs}.mlp.Wo", ffn_bias)
        yield from linear("model.encoder.norm", "model.final_norm", model.norm_bias)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head."""
        (objective,) = recipe.objective
        assert isinstance(objective, MaskedLanguageModelConfig)
        for link in (
            *linear("heads.mlm.transform", "head.dense", objective.map_bias),
            *linear("heads.mlm.norm", "head.norm", recipe.model.norm_bias),
        ):
            yield link.may_miss(HEAD)
        # A remark of its own: checkpoints with a task head have the linear layer and the norm, but not this bias.
        yield same("heads.mlm.bias", "decoder.bias", vocabulary=True).may_miss("bias of each token in the head of mlm")
        yield tied("decoder.weight", "model.embeddings.tok_embeddings.weight")

    def remarks(self, recipe: Recipe) -> list[str]:
        """Say that their attention has one dropout rate for its weights and its output, where the run has two."""
        mixers, block = _attention_of(recipe)
        rate = recipe.model.dropout
        of_weights = rate if mixers[0].dropout is None else mixers[0].dropout
        output = rate if block.mixer_dropout is None else block.mixer_dropout
        if output == of_weights:
            return []
        return [f"a dropout of {output:g} of what attention gives, which only training has: theirs is {of_weights:g}"]

    @override
    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        return {"bos_token_id": tokenizer.start, "eos_token_id": tokenizer.separator}

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """W transform(h) of each token, or of a row's first position or mean."""
        if form.of_rows and form.pooling not in POOLINGS:
            raise NotSaid(f"its rows are pooled by {form.pooling}, and ModernBert's by {' or '.join(POOLINGS)}")
        (objective,) = recipe.objective
        assert isinstance(objective, MaskedLanguageModelConfig)
        links = [
            *linear("transform.map", "head.dense", objective.map_bias),
            *linear("transform.norm", "head.norm", recipe.model.norm_bias),
            *linear("output", "classifier"),
        ]
        pooling = {"classifier_pooling": form.pooling} if form.of_rows else {}
        return TaskHead(f"ModernBertFor{form.ending}", links, pooling)

    @override
    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        form = super().form(ending, recipe, config)
        if form.of_rows:
            form = form._replace(pooling=config.choice("classifier_pooling", POOLINGS, "cls"))
        return form._replace(transform=True)


def _truth(config: ConfigReader, key: str, default: bool) -> bool:
    """The value of a key that is true or false; `default` for an absent key.

    Raises:
        UserError: the value is something else.
    """
    value = config.values.get(key)
    if value is not None and not isinstance(value, bool):
        raise UserError(f"{config.where}: {key}: true or false is wanted, not {value!r:.50}")
    return default if value is None else value


def _layer_types(config: ConfigReader) -> list[LayerType]:
    """The kind of attention of each layer."""
    layers, types = config.whole("num_hidden_layers", 22), config.values.get("layer_types")
    if types is None:
        every = config.whole(REGULAR, 3)
        return [SLIDING if number % every else FULL for number in range(layers)]
    if not isinstance(types, list) or len(types) != layers or any(each not in (FULL, SLIDING) for each in types):
        wanted = f"for each of the {layers} layers {FULL} or {SLIDING} is wanted"
        raise UserError(f"{config.where}: layer_types: {wanted}, not {types!r:.50}")
    return types


def _base(config: ConfigReader, kind: LayerType) -> float:
    """The base of rotary positions in layers of a kind."""
    parameters = config.values.get("rope_parameters")
    if parameters is None:  # in transformers 4 sliding layers without a base have that of full layers
        default = BASES[kind]
        if kind == SLIDING and OLD_BASES[SLIDING] in config.values and config.values[OLD_BASES[SLIDING]] is None:
            default = _base(config, FULL)
        return config.number(OLD_BASES[kind], default)
    if not isinstance(parameters, Mapping) or not all(isinstance(each, Mapping) for each in parameters.values()):
        wanted = f"an object for each of {FULL} and {SLIDING} is wanted"
        raise UserError(f"{config.where}: rope_parameters: {wanted}, not {parameters!r:.50}")
    reader = ConfigReader(parameters.get(kind, {}), f"{config.where}: rope_parameters.{kind}")
    for key in ("rope_type", "type"):  # the older name, which is read where there is no other
        reader.require(key, "default")
    return reader.number("rope_theta", config.number(OLD_BASES[kind], BASES[kind]))


def _mixers(config: ConfigReader) -> dict[LayerType, dict[str, Any]]:
    """The mixer of layers of each kind."""
    own = config.values.get(HALF)  # which has the last word in transformers 5
    window = config.whole("local_attention", 128) // 2 if own is None else config.whole(HALF)
    if not window:
        raise UserError(f"{config.where}: local_attention: a window of 1 token has no counterpart here; at least 2 has")
    mixer = {"kind": "attention", "heads": config.whole("num_attention_heads", 12), "positions": "rotary"}
    return {
        FULL: mixer | {"rotary_base": _base(config, FULL)},
        SLIDING: mixer | {"rotary_base": _base(config, SLIDING), "window": window},
    }


def _blocks(
    types: Sequence[LayerType], mixers: Mapping[LayerType, dict[str, Any]], block: dict[str, Any]
) -> list[dict[str, Any]]:
    """The blocks of all layers; the first layer has no norm before its attention."""

    def layer(kind: LayerType) -> dict[str, Any]:
        return block | {"mixer": mixers[kind]}

    blocks = [layer(types[0]) | {"at": 1, "mixer_norm": False}]
    if (every := _regular(types)) is not None:
        return [*blocks, layer(FULL) | {"every": every}, layer(SLIDING)]
    runs: list[tuple[LayerType, int]] = []
    for kind in types[1:]:
        runs = [*runs[:-1], (kind, runs[-1][1] + 1)] if runs and runs[-1][0] == kind else [*runs, (kind, 1)]
    return blocks + [layer(kind) | {"repeat": count} for kind, count in runs]


def _regular(types: Sequence[LayerType]) -> int | None:
    """N, if every N-th layer from the first on has full attention and at least one has not; None: another order."""
    every = next((number for number, kind in enumerate(types) if number and kind == FULL), len(types))
    regular = [SLIDING if number % every else FULL for number in range(len(types))]
    return every if every > 1 and list(types) == regular else None


def _attention_of(recipe: Recipe) -> tuple[list[AttentionConfig], TransformerBlockConfig]:
    """The attention of each layer of an encoder, and the last block, which stands for all in everything else.

    Raises:
        NotSaid: the model is not an encoder of pre-norm transformer blocks with attention.
    """
    encoder = recipe.model.encoder
    if encoder is None or recipe.model.decoder is not None:
        raise NotSaid("it is not an encoder alone")
    mixers: list[AttentionConfig] = []
    blocks: list[TransformerBlockConfig] = []
    for block in encoder.layer_blocks():
        if not isinstance(block, TransformerBlockConfig):
            raise NotSaid(f"its blocks are of kind {block.kind}")
        if not isinstance(block.mixer, AttentionConfig):
            raise NotSaid(f"its mixers are of kind {block.mixer.kind}")
        mixers.append(block.mixer)
        blocks.append(block)
    if blocks[-1].norm != "pre" or encoder.share != "none":
        raise NotSaid("its norms do not stand before its functions, or its layers share parts")
    return mixers, blocks[-1]
