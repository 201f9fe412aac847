"""ALBERT (Lan et al. 2020): layers of a group share their weights, and embedding tables are narrower than layers."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.encoders import (
    HEAD,
    bert_config,
    bert_model,
    encoder_of,
    layer_links,
    mlm_objective,
    require_heads,
    segment_table,
)
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead, row_head, token_head
from bakeoff.interop.links import Link, linear, same, tied
from bakeoff.recipe import Recipe

LAYER = (
    *(f"attention.{name}" for name in ("query", "key", "value", "dense", "LayerNorm")),
    *("ffn", "ffn_output", "full_layer_layer_norm"),
)
DEFAULTS = {"hidden_act": "gelu_new", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
"""Values of keys that a config.json leaves out, where BERT's are others."""


class Albert(Family):
    """ALBERT; heads mlm and sop."""

    model_types: ClassVar[tuple[str, ...]] = ("albert",)
    prefix: ClassVar[str] = "albert."
    kinds: ClassVar[tuple[str, ...]] = ("unigram",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"mlm": ("prediction_logits", "logits"), "sop": ("sop_logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of an ALBERT; sentence order (sop) is an objective if `tensors` hold a pooler, or are empty."""
        config.require("inner_group_num", 1)
        said = {key: value for key, value in config.values.items() if value is not None}
        config = ConfigReader(DEFAULTS | said, config.where)
        model = bert_model(config, 0)
        layers, groups = config.whole("num_hidden_layers"), config.whole("num_hidden_groups", 1)
        if layers % groups:
            raise UserError(f"{config.where}: num_hidden_groups: {groups} do not divide {layers} layers")
        width = config.whole("embedding_size", 128)
        if width == model["encoder"]["width"]:
            raise UserError(f"{config.where}: embedding_size: as wide as the layers has no counterpart here")
        model["embedding"] |= {"width": width, "segments": config.whole("type_vocab_size", 2)}
        model["encoder"] |= {"share": "all", "groups": groups}
        pairs = not tensors or any(name.startswith(("albert.pooler.", "sop_classifier.")) for name in tensors)
        return {
            "paper": "Lan et al. 2020, ALBERT, arXiv:1909.11942",
            "model": model,
            "input": {
                "format": "segment_pair" if pairs else "full_sentences",
                "length": min(model["embedding"]["length"], 512),
            },
            "objective": [mlm_objective(config), *([{"kind": "sop"}] if pairs else [])],
        }

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        encoder, _, _ = encoder_of(recipe)
        if encoder.share != "all":
            raise NotSaid(f"its layers share {encoder.share}, and ALBERT's all")
        kinds = require_heads(recipe, ("mlm", "sop"))
        return {
            **bert_config(recipe),
            "num_hidden_groups": encoder.groups,
            "inner_group_num": 1,
            "embedding_size": recipe.model.embedding_width,
            "type_vocab_size": max(1, recipe.model.embedding.segments),
            "architectures": ["AlbertForPreTraining" if "sop" in kinds else "AlbertForMaskedLM"],
        }

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding, its projection and the groups of layers."""
        embeddings, encoder = "albert.embeddings", "albert.encoder"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight")
        yield segment_table(recipe, f"{embeddings}.token_type_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        yield from linear("model.embedding.projection", f"{encoder}.embedding_hidden_mapping_in")
        assert recipe.model.encoder is not None
        for number in range(recipe.model.encoder.groups):
            yield from layer_links(number, f"{encoder}.albert_layer_groups.{number}.albert_layers.0", LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head, the pooler and the sop head."""
        for link in (
            *linear("heads.mlm.transform", "predictions.dense"),
            *linear("heads.mlm.norm", "predictions.LayerNorm"),
            same("heads.mlm.bias", "predictions.bias", vocabulary=True),
        ):
            yield link.may_miss(HEAD)
        yield tied("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight")
        yield tied("predictions.decoder.bias", "predictions.bias")
        if any(part.kind == "sop" for part in recipe.objective):
            for link in linear("heads.sop.pooler", "albert.pooler"):
                yield link.may_miss("pooler")
            for link in linear("heads.sop.output", "sop_classifier.classifier"):
                yield link.may_miss("head of sop")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """The pooler and a linear layer for rows, a linear layer for tokens, as in BERT."""
        if form.of_rows:
            return row_head("Albert", form, "albert.pooler", "classifier")
        return token_head("Albert", form)
