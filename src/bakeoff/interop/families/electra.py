"""ELECTRA (Clark et al. 2020): the discriminator, which detects replaced tokens, or the generator, which makes them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.interop.config_reader import ACTIVATIONS, ConfigReader
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
from bakeoff.interop.families.task_heads import CHOICES, HeadForm, TaskHead, require_summary, row_head, token_head
from bakeoff.interop.links import Link, linear, same, tied
from bakeoff.recipe import Recipe
from bakeoff.tasks.task_config import HeadClass

SHARE = 0.25
"""Width of a new generator as a share of the discriminator's, as in the paper's small and large models."""


OF_CHOICES = {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}
"""Keys of config.json that say how `ElectraForMultipleChoice` pools a row into one vector."""


class Electra(Family):
    """ELECTRA; head rtd of discriminators, mlm of generators."""

    model_types: ClassVar[tuple[str, ...]] = ("electra",)
    prefix: ClassVar[str] = "electra."
    yields_to: ClassVar[frozenset[str]] = frozenset({"bert", "roberta"})
    pooler: ClassVar[str] = "gelu"
    logits: ClassVar[Mapping[str, Sequence[str]]] = {"mlm": ("logits",), "rtd": ("logits",)}

    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """A generator's recipe if `tensors` hold its head; else a discriminator's, with a new generator."""
        model = bert_model(config, config.whole("type_vocab_size", 2))
        width, heads = config.whole("embedding_size", 128), config.whole("num_attention_heads")
        if width != model["encoder"]["width"]:
            model["embedding"]["width"] = width
        objective: list[dict[str, Any]] = [{"kind": "mlm", "rate": 0.15}]
        if not any(name.startswith(("generator_predictions.", "generator_lm_head.")) for name in tensors):
            activation = config.choice("hidden_act", ACTIVATIONS, "gelu")
            size = model["encoder"]["width"]
            fits = round(SHARE * size) % max(1, round(SHARE * heads)) == 0
            share = SHARE if fits else 1.0
            objective = [{"kind": "mlm", "rate": 0.15, "mask": 0.85, "random": 0.0}]
            objective += [{"kind": "rtd", "generator": share, "activation": activation}]
        length = min(model["embedding"]["length"], 512)
        return {
            "paper": "Clark et al. 2020, ELECTRA, arXiv:2003.10555",
            "model": model,
            "input": {"format": "full_sentences", "length": length},
            "objective": objective,
        }

    @override
    def config(self, recipe: Recipe) -> dict[str, Any]:
        kinds = require_heads(recipe, ("mlm", "rtd"))
        return {
            **bert_config(recipe),
            "embedding_size": recipe.model.embedding_width,
            "type_vocab_size": max(1, recipe.model.embedding.segments),
            "architectures": ["ElectraForPreTraining" if "rtd" in kinds else "ElectraForMaskedLM"],
        }

    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the embedding, its projection where tables and layers differ in width, and the layers."""
        embeddings = "electra.embeddings"
        yield same("model.embedding.tokens.weight", f"{embeddings}.word_embeddings.weight", vocabulary=True)
        yield same("model.embedding.positions.weight", f"{embeddings}.position_embeddings.weight")
        yield segment_table(recipe, f"{embeddings}.token_type_embeddings.weight")
        yield from linear("model.embedding.norm", f"{embeddings}.LayerNorm")
        assert recipe.model.encoder is not None
        if recipe.model.embedding_width != recipe.model.encoder.width:
            yield from linear("model.embedding.projection", "electra.embeddings_project")
        yield from encoder_layers(recipe, "electra.encoder.layer.{}", BERT_LAYER)

    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the rtd head, or of the mlm head in a recipe without rtd (beside rtd it is the generator's)."""
        if any(part.kind == "rtd" for part in recipe.objective):
            for link in (
                *linear("heads.rtd.transform", "discriminator_predictions.dense"),
                *linear("heads.rtd.output", "discriminator_predictions.dense_prediction"),
            ):
                yield link.may_miss("head of rtd")
            return
        for link in (
            *linear("heads.mlm.transform", "generator_predictions.dense"),
            *linear("heads.mlm.norm", "generator_predictions.LayerNorm"),
            same("heads.mlm.bias", "generator_lm_head.bias", vocabulary=True),
        ):
            yield link.may_miss(HEAD)
        yield tied("generator_lm_head.weight", "electra.embeddings.word_embeddings.weight")

    def compared(self, module: Any, hidden: Any, answers: Any) -> Iterator[tuple[str, Any, Any]]:
        """The discriminator's logit that each token is replaced, (B, T, 1); for a generator its logits, (B, T, V)."""
        if "rtd" not in module.heads:
            yield from super().compared(module, hidden, answers)
            return
        scores = module.heads["rtd"].scores(hidden, module.model.embedding.weight)
        yield "rtd", (scores[..., 1:] - scores[..., :1]), answers["logits"][..., None]

    def remarks(self, recipe: Recipe) -> list[str]:
        """Say that an export leaves the generator out."""
        rtd = any(part.kind == "rtd" for part in recipe.objective)
        return ["the generator, which ELECTRA trains beside the discriminator, does not go along"] if rtd else []

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """Two linear layers with gelu between them for rows (other names for choices), a linear layer for tokens."""
        if form.ending == CHOICES:
            head = row_head("Electra", form, "sequence_summary.summary", "classifier", self.pooler)
            return head._replace(config=OF_CHOICES)
        if form.of_rows:
            return row_head("Electra", form, "classifier.dense", "classifier.out_proj", self.pooler)
        return token_head("Electra", form)

    @override
    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        if ending == CHOICES:
            require_summary(config, OF_CHOICES)
        return super().form(ending, recipe, config)
