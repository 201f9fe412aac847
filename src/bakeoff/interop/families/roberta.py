"""RoBERTa (Liu et al. 2019): BERT's layers, positions that begin after the padding id, and another head."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.encoders import (
    BERT_LAYER,
    HEAD,
    bert_config,
    bert_model,
    encoder_layers,
    require_heads,
    segment_table,
)
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import CHOICES, HeadForm, TaskHead, row_head, token_head
from bakeoff.interop.links import Link, behind, linear, same, tied
from bakeoff.recipe import Recipe

PAD = 1
"""The id of the padding token; the first position has row PAD + 1 of the table of positions."""


class Roberta(Family):
    """RoBERTa, and XLM-RoBERTa, which has the same keys and names; head mlm."""

    model_types: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta")
    prefix: ClassVar[str] = "roberta."
    kinds: ClassVar[tuple[str, ...]] = ("byte_bpe",)
    yields_to: ClassVar[frozenset[str]] = frozenset({"bert"})
    pad: ClassVar[int | None] = PAD
    separators: ClassVar[int] = 2
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"mlm": ("logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a RoBERTa; the activation of its head is always the exact gelu."""
        config.require("pad_token_id", PAD)
        model = bert_model(config, config.whole("type_vocab_size", 2))
        model["embedding"]["length"] = length = max(1, model["embedding"]["length"] - PAD - 1)
        return {
            "paper": "Liu et al. 2019, RoBERTa, arXiv:1907.11692",
            "model": model,
            "input": {"format": "full_sentences", "length": min(length, 512)},
            "objective": [{"kind": "mlm", "rate": 0.15}],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a RoBERTa; `max_position_embeddings` counts the rows before the first position, too."""
        require_heads(recipe, ("mlm",))
        config = bert_config(recipe)
        config["max_position_embeddings"] += PAD + 1
        segments = max(1, recipe.model.embedding.segments)
        return {**config, "pad_token_id": PAD, "type_vocab_size": segments, "architectures": ["RobertaForMaskedLM"]}

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding and the layers."""
        embeddings = "roberta.embeddings"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield behind("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight", PAD + 1)
        yield segment_table(recipe, f"{embeddings}.token_type_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        yield from encoder_layers(recipe, "roberta.encoder.layer.{}", BERT_LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head."""
        for link in (
            *linear("heads.mlm.transform", "lm_head.dense"),
            *linear("heads.mlm.norm", "lm_head.layer_norm"),
            same("heads.mlm.bias", "lm_head.bias", vocabulary=True),
        ):
            yield link.may_miss(HEAD)
        yield tied("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
        yield tied("lm_head.decoder.bias", "lm_head.bias")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """Two linear layers for rows, of which the first is the pooler for choices; a linear layer for tokens."""
        if form.ending == CHOICES:
            return row_head("Roberta", form, "roberta.pooler.dense", "classifier")
        if form.of_rows:
            return row_head("Roberta", form, "classifier.dense", "classifier.out_proj")
        return token_head("Roberta", form)
