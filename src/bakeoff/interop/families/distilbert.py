"""DistilBERT (Sanh et al. 2019): BERT's layers under other names, without segments and without a pooler."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.encoders import (
    HEAD,
    bert_config,
    bert_model,
    encoder_layers,
    mlm_objective,
    require_heads,
)
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, NotSaid, TaskHead, row_head, token_head
from bakeoff.interop.links import Link, linear, same, tied
from bakeoff.recipe import Recipe

KEYS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "max_position_embeddings": "max_position_embeddings",
}
"""BERT's keys by DistilBERT's."""
LAYER = (
    *(f"attention.{name}" for name in ("q_lin", "k_lin", "v_lin", "out_lin")),
    *("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
)


class DistilBert(Family):
    """DistilBERT; head mlm."""

    model_types: ClassVar[tuple[str, ...]] = ("distilbert",)
    prefix: ClassVar[str] = "distilbert."
    yields_to: ClassVar[frozenset[str]] = frozenset({"bert", "electra", "roberta"})
    pooler: ClassVar[str] = "relu"
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"mlm": ("logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a DistilBERT, read through BERT's keys."""
        values = {theirs: config.values[key] for key, theirs in KEYS.items() if key in config.values}
        config = ConfigReader(values, config.where, {theirs: key for key, theirs in KEYS.items()})
        return {
            "paper": "Sanh et al. 2019, DistilBERT, arXiv:1910.01108",
            "model": bert_model(config, 0),
            "input": {"format": "full_sentences", "length": min(config.whole("max_position_embeddings"), 512)},
            "objective": [mlm_objective(config)],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a DistilBERT, which has no key for the epsilon of its norms (1e-12)."""
        require_heads(recipe, ("mlm",))
        if recipe.model.embedding.segments:
            raise NotSaid("it has segments")
        values = bert_config(recipe)
        return {**{key: values[theirs] for key, theirs in KEYS.items()}, "architectures": ["DistilBertForMaskedLM"]}

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding and the layers."""
        embeddings = "distilbert.embeddings"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        yield from encoder_layers(recipe, "distilbert.transformer.layer.{}", LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head."""
        for link in (
            *linear("heads.mlm.transform", "vocab_transform"),
            *linear("heads.mlm.norm", "vocab_layer_norm"),
            same("heads.mlm.bias", "vocab_projector.bias", vocabulary=True),
        ):
            yield link.may_miss(HEAD)
        yield tied("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """Two linear layers with relu between them for rows, a linear layer for tokens."""
        if form.of_rows:
            return row_head("DistilBert", form, "pre_classifier", "classifier", self.pooler)
        return token_head("DistilBert", form)
