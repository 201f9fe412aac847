"""BERT (Devlin et al. 2019), and models published under its `model_type`: Chinese-BERT-wwm, StructBERT, ..."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.encoders import (
    BERT_LAYER,
    HEAD,
    bert_config,
    bert_model,
    encoder_layers,
    mlm_objective,
    require_heads,
    segment_table,
)
from bakeoff.interop.families.family import Family
from bakeoff.interop.families.task_heads import HeadForm, TaskHead, row_head, token_head
from bakeoff.interop.links import Link, linear, same, tied
from bakeoff.recipe import Recipe


class Bert(Family):
    """BERT; heads mlm and nsp."""

    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    prefix: ClassVar[str] = "bert."
    kinds: ClassVar[tuple[str, ...]] = ("wordpiece",)
    logits: ClassVar[Mapping[str, Sequence[str]]] = {
        "mlm": ("prediction_logits", "logits"),
        "nsp": ("seq_relationship_logits",),
    }

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a BERT; nsp is an objective if `tensors` hold a pooler, which it alone trains, or are empty."""
        pairs = not tensors or any(name.startswith(("bert.pooler.", "cls.seq_relationship.")) for name in tensors)
        length = config.whole("max_position_embeddings")
        return {
            "paper": "Devlin et al. 2019, BERT, arXiv:1810.04805",
            "model": bert_model(config, config.whole("type_vocab_size", 2)),
            "input": {"format": "segment_pair" if pairs else "full_sentences", "length": min(length, 512)},
            "objective": [mlm_objective(config), *([{"kind": "nsp"}] if pairs else [])],
        }

    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a BERT; a recipe without segments has one segment there, whose row is zeros."""
        kinds = require_heads(recipe, ("mlm", "nsp"))
        architecture = "BertForPreTraining" if "nsp" in kinds else "BertForMaskedLM"
        segments = recipe.model.embedding.segments
        return {**bert_config(recipe), "type_vocab_size": max(1, segments), "architectures": [architecture]}

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding and the layers."""
        embeddings = "bert.embeddings"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight")
        yield segment_table(recipe, f"{embeddings}.token_type_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        yield from encoder_layers(recipe, "bert.encoder.layer.{}", BERT_LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the mlm head, the pooler and the nsp head."""
        kinds = {part.kind for part in recipe.objective}
        if "mlm" in kinds:
            head = "cls.predictions"
            for link in (
                *linear("heads.mlm.transform", f"{head}.transform.dense"),
                *linear("heads.mlm.norm", f"{head}.transform.LayerNorm"),
                same("heads.mlm.bias", f"{head}.bias", vocabulary=True),
            ):
                yield link.may_miss(HEAD)
            yield tied(f"{head}.decoder.weight", "bert.embeddings.word_embeddings.weight")
            yield tied(f"{head}.decoder.bias", f"{head}.bias")
        if "nsp" in kinds:
            for link in linear("heads.nsp.pooler", "bert.pooler.dense"):
                yield link.may_miss("pooler")
            for link in linear("heads.nsp.output", "cls.seq_relationship"):
                yield link.may_miss("head of nsp")

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """The pooler and a linear layer for rows, a linear layer for tokens."""
        if form.of_rows:
            return row_head("Bert", form, "bert.pooler.dense", "classifier")
        return token_head("Bert", form)
