"""The description of a pre-trained run for its export with code."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bakeoff.interop.families.bakeoff_family import TRAINED_HEAD
from bakeoff.interop.remote_code.described import TASK_CLASSES, Described
from bakeoff.interop.remote_code.settings import generation_of, head_settings, settings_of
from bakeoff.interop.tokenizer_files import Frame, TokenizerSettings, frame_of
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model import Model
from bakeoff.objectives.heads import Head
from bakeoff.recipe import Recipe
from bakeoff.row import Row, Source
from bakeoff.runs.run import Run
from bakeoff.tasks.pooling import natural_pooling

MASKED, CAUSAL, SEQUENCE_TO_SEQUENCE = "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM"
"""The classes of transformers with a head that predicts tokens."""


def describe_pretrained(run: Run) -> Described:
    """The description of a pre-trained run."""
    recipe, tokenizer, module = run.recipe, run.tokenizer, run.load()
    model, length = module.model, recipe.input.length
    config = settings_of(recipe, tokenizer, model, length)
    config["task_head"] = {"pooling": natural_pooling(recipe), "dropout": 0.1, "layers": 1}
    tensors = {f"model.network.{name}": tensor for name, tensor in model.state_dict().items()}
    remarks = list[str]()
    heads = _language(recipe, module)
    head = next(iter(heads.values()), None)
    settings = None if head is None else head_settings(head, model)
    kinds = list[str]()
    if head is not None and settings is None:
        heads, head = {}, None
        remarks.append("the head that scores tokens is one of a plugin, and does not go along")
    if head is not None and settings is not None:
        config["language_head"] = settings
        config[TRAINED_HEAD] = next(each.name for each in module.objectives if each.head is head)
        kinds = [settings["kind"]]
        tensors |= {f"language.{name}": tensor for name, tensor in head.state_dict().items()}
    if MASKED in heads:
        config["from_before"] = any(part.from_before for part in recipe.objective)
    if recipe.model.sequence_to_sequence:
        remarks.append("the classes for labels do not go along; export the fine-tuned run")
    classes = _classes(recipe, heads)
    main = next(iter(heads), "AutoModel")

    def computed(batch: Row[Tensor]) -> dict[str, Tensor]:
        outputs = outputs_of(recipe, model, head, batch, config)
        return {name: values for name, values in outputs.items() if name in classes}

    return Described(
        recipe,
        tokenizer,
        config,
        tensors,
        classes,
        main,
        purpose={MASKED: "fill-mask", CAUSAL: "text-generation"}.get(main),
        frame=_tokenizer_settings(recipe, heads, config["uses_segments"]),
        computed=computed,
        generation=generation_of(tokenizer) if _generates(heads) else None,
        heads=kinds,
        remarks=remarks,
    )


def _generates(heads: Mapping[str, Head]) -> bool:
    """Whether there is a class that generates texts."""
    return CAUSAL in heads or SEQUENCE_TO_SEQUENCE in heads


def _classes(recipe: Recipe, heads: Mapping[str, Head]) -> dict[str, str]:
    """Our class for each class of transformers: the model alone, with the head for tokens, and with those of tasks."""
    classes = {"AutoModel": "BakeoffModel", **{name: name.replace("AutoModel", "Bakeoff") for name in heads}}
    return classes if recipe.model.sequence_to_sequence else {**classes, **TASK_CLASSES}


def _tokenizer_settings(recipe: Recipe, heads: Mapping[str, Head], uses_segments: bool) -> TokenizerSettings:
    """The settings of the tokenizer: the marks around a text, and its side of padding."""
    generates, masked = _generates(heads), MASKED in heads
    frame: Frame = "source" if recipe.model.sequence_to_sequence else frame_of(recipe)
    if frame == "separator" and generates and not masked:
        frame = "opening"
    alone = generates and not masked and not recipe.model.sequence_to_sequence
    return TokenizerSettings(
        frame,
        recipe.model.longest_input or recipe.input.length,
        uses_segments,
        generates=alone,
        pads_before=alone,
        cleans=not generates,
        marks=recipe.extra_tokens,
    )


def _language(recipe: Recipe, module: PretrainingModel) -> dict[str, Head]:
    """The head that predicts tokens, under each class of transformers that can use it; a file holds one head.

    Of several it is one that was trained until the end.
    """
    config = module.model.config
    learnt = None if module.generating is None else module.generating.learns
    heads: dict[str, Head] = {}
    each_with_part = zip(recipe.objective, module.objectives, strict=True)
    for part, objective in sorted(each_with_part, key=lambda pair: pair[0].weight == 0):
        if objective.name == learnt or config.directions == 2:
            continue
        if part.scoring == "masked" or part.from_before:
            heads.setdefault(MASKED, objective.head)
        elif part.generates:
            heads.setdefault(SEQUENCE_TO_SEQUENCE if config.sequence_to_sequence else CAUSAL, objective.head)
    first = next(iter(heads.values()), None)
    return {name: head for name, head in heads.items() if head is first}


def outputs_of(
    recipe: Recipe, model: Model, head: Head | None, batch: Row[Tensor], config: dict[str, Any]
) -> dict[str, Tensor]:
    """Outputs of a pre-trained model for a batch, by class of transformers: (B, T, D) states, (B, T, V) logits."""
    ids, segments, padding_mask = batch.ids, batch.segments, batch.padding_mask
    segments = segments if config["uses_segments"] else None
    counts = torch.full_like(ids[:, 0], ids.shape[1]) if padding_mask is None else padding_mask.sum(1)
    both = counts if recipe.reads_both_sides else None
    table = model.embedding.weight

    def scores(hidden: Tensor) -> Tensor:
        assert head is not None
        flat: Tensor = head.scores(hidden.flatten(0, 1), table)
        return flat.view(*hidden.shape[:2], -1)

    if recipe.model.sequence_to_sequence:
        source = Source(ids[:, 1:], None if padding_mask is None else padding_mask[:, 1:])
        outputs = {"AutoModel": model(Row(ids, padding_mask=padding_mask, source=source))[0]}
        if head is not None:
            outputs["AutoModelForSeq2SeqLM"] = scores(
                model(Row(ids, padding_mask=None, source=Source(ids, padding_mask)))[0]
            )
        return outputs
    hidden, _ = model(Row(ids, segments, padding_mask, prefix=both))
    outputs = {"AutoModel": hidden}
    if head is not None:
        logits = scores(hidden)
        if config.get("from_before"):
            logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        outputs["AutoModelForMaskedLM"] = logits
        if recipe.model.causal:
            forwards = hidden if both is None else model(Row(ids, None, padding_mask))[0]
            outputs["AutoModelForCausalLM"] = scores(forwards)
    return outputs
