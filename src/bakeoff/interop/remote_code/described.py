"""A run as transformers is to have it: settings, classes, weights, tokenizer, and what ours computes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.generate import never_written
from bakeoff.interop.families.own import RECIPE, TRAINED_HEAD
from bakeoff.interop.remote_code.tokenizer_files import Frame, TokenizerSettings
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.inputs import Inputs, Source
from bakeoff.models.model import Model
from bakeoff.objectives.heads import AdaptiveTokenHead, Head, TokenHead, UntiedTokenHead
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import LinearHead, natural_pooling
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tasks.kinds.regression import Regression
from bakeoff.tasks.rows.batches import InputBatch
from bakeoff.tokenizer.tokenizer import Tokenizer

TASK_CLASSES = {
    "AutoModelForSequenceClassification": "BakeoffForSequenceClassification",
    "AutoModelForTokenClassification": "BakeoffForTokenClassification",
    "AutoModelForQuestionAnswering": "BakeoffForQuestionAnswering",
    "AutoModelForMultipleChoice": "BakeoffForMultipleChoice",
}
"""What a pre-trained model can be fine-tuned as."""
_OF_KINDS = {
    "classification": ("AutoModelForSequenceClassification", "text-classification"),
    "multilabel": ("AutoModelForSequenceClassification", "text-classification"),
    "regression": ("AutoModelForSequenceClassification", "text-classification"),
    "tagging": ("AutoModelForTokenClassification", "token-classification"),
    "question_answering": ("AutoModelForQuestionAnswering", "question-answering"),
    "choice": ("AutoModelForMultipleChoice", "multiple-choice"),
}
"""For each kind of task the class of transformers, and the name of what it is for."""
_PROBLEMS = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}


@dataclass
class Described:
    """What is to be written."""

    recipe: Recipe
    """The model's recipe."""
    tokenizer: Tokenizer
    """Its tokenizer."""
    config: dict[str, Any]
    """What config.json holds beside the classes."""
    tensors: dict[str, Tensor]
    """The weights."""
    classes: dict[str, str]
    """For each class of transformers ours."""
    main: str
    """The first of them to be named to a user."""
    purpose: str | None
    """transformers' name for what it is for."""
    frame: TokenizerSettings
    """How texts become rows."""
    computed: Callable[[InputBatch], dict[str, Tensor]]
    """What ours computes of a batch, by class of transformers; what is for padding stands where it stands."""
    generation: dict[str, Any] | None = None
    """How it writes."""
    heads: list[str] = field(default_factory=list)
    """The kind of the head that scores tokens, where there is one."""
    remarks: list[str] = field(default_factory=list)
    """What does not go along."""


def described(path: Path) -> Described:
    """What is to be written of the run at a path.

    Raises:
        UserError: no such run, or one that has nothing to use yet.
    """
    return _finetuned(FinetunedRun.open(path)) if FinetunedRun.at(path) else _pretrained(Run.open_trained(path))


def _settings(recipe: Recipe, tokenizer: Tokenizer, model: Model, longest: int) -> dict[str, Any]:
    """What all models of a recipe have in their config."""
    config = recipe.model
    start = "none" if config.encoder is None else "last" if recipe.input.start_last else "first"
    mixers = config.mixers
    values: dict[str, Any] = {
        "architecture": config.model_dump(mode="json"),
        RECIPE: recipe.model_dump(mode="json"),
        "vocab_size": len(model.embedding.table),
        "uses_segments": config.embedding.segments >= 2 or any(mixer.reads_segments for mixer in mixers),
        "start_token": start,
        "both_sides": recipe.reads_both_sides,
        "reads_prefix": recipe.reads_prefix,
        "hidden_size": config.output_width,
        "num_hidden_layers": sum(stack.layers for stack in config.stacks().values()),
        "max_position_embeddings": config.longest_input or longest,
        "is_encoder_decoder": config.sequence_to_sequence,
        "pad_token_id": tokenizer.pad,
        "cls_token_id": tokenizer.start,
        "sep_token_id": tokenizer.separator,
        "eos_token_id": tokenizer.separator,
        "bos_token_id": tokenizer.opening,
        "tie_word_embeddings": False,
    }
    heads = getattr(mixers[0], "heads", None)
    if heads is not None:
        values["num_attention_heads"] = heads
    if config.sequence_to_sequence:
        values["decoder_start_token_id"] = tokenizer.start
    return values


def _frame(recipe: Recipe, closed: bool = False) -> Frame:
    """What stands around a text that a head of a task reads."""
    if recipe.model.encoder is None:
        return "separator_closed" if closed else "separator"
    return "start_last" if recipe.input.start_last else "start"


def _head_settings(head: Head, model: Model) -> dict[str, Any] | None:
    """The kind and the arguments of a head that scores tokens; None where it is none of ours."""
    if type(head) is TokenHead:
        norm, table_width = head.norm, model.embedding.table.shape[1]
        return {
            "kind": "tied",
            "width": table_width if head.transform is None else head.transform.in_features,
            "table_width": table_width,
            "transform": norm is not None,
            "activation": head.activation,
            "norm_epsilon": 1e-12 if norm is None else norm.eps,
            "bias": head.bias is not None,
            "norm_affine": norm is None or norm.elementwise_affine,
            "norm_bias": norm is None or not norm.elementwise_affine or norm.bias is not None,
            "map_bias": head.transform is None or head.transform.bias is not None,
        }
    if type(head) is UntiedTokenHead:
        return {"kind": "untied", "width": head.output.in_features, "bias": head.output.bias is not None}
    if type(head) is AdaptiveTokenHead:
        inner = head.softmax
        cutoffs = list(inner.cutoffs[:-1])
        return {
            "kind": "adaptive",
            "width": inner.in_features,
            "cutoffs": cutoffs,
            "bias": inner.head.bias is not None,
        }
    return None


def _pretrained(run: Run) -> Described:
    recipe, tokenizer, module = run.recipe, run.tokenizer, run.load()
    model, length = module.model, recipe.input.length
    config = _settings(recipe, tokenizer, model, length)
    config["task_head"] = {"pooling": natural_pooling(recipe), "dropout": 0.1, "layers": 1}
    tensors = {f"model.network.{name}": tensor for name, tensor in model.state_dict().items()}
    classes: dict[str, str] = {"AutoModel": "BakeoffModel"}
    found = _language(recipe, module)
    head: Head | None = None
    generation, remarks, kinds = None, list[str](), list[str]()
    if found:
        head = next(iter(found.values()))
        settings = _head_settings(head, model)
        if settings is None:
            found, head = {}, None
            remarks.append("the head that scores tokens is one of a plugin, and does not go along")
        else:
            config["language_head"] = settings
            config[TRAINED_HEAD] = next(each.name for each in module.objectives if each.head is head)
            kinds = [settings["kind"]]
            tensors |= {f"language.{name}": tensor for name, tensor in head.state_dict().items()}
            classes |= {name: name.replace("AutoModel", "Bakeoff") for name in found}
    if "AutoModelForMaskedLM" in found:
        config["from_before"] = any(part.from_before for part in recipe.objective)
    writes = "AutoModelForCausalLM" in found or "AutoModelForSeq2SeqLM" in found
    if writes:
        generation = _generation(tokenizer)
    if not recipe.model.sequence_to_sequence:
        classes |= TASK_CLASSES
    else:
        remarks.append("the classes for labels do not go along; export the fine-tuned run")
    main = next(iter(found), "AutoModel")
    masked = "AutoModelForMaskedLM" in found
    frame: Frame = "source" if recipe.model.sequence_to_sequence else _frame(recipe)
    if frame == "separator" and writes and not masked:
        frame = "opening"
    purpose = {"AutoModelForMaskedLM": "fill-mask", "AutoModelForCausalLM": "text-generation"}.get(main)
    told = TokenizerSettings(
        frame,
        recipe.model.longest_input or length,
        config["uses_segments"],
        writes=writes and not masked and not recipe.model.sequence_to_sequence,
        cleans=not writes,
        marks=recipe.extra_tokens,
    )

    def computed(batch: InputBatch) -> dict[str, Tensor]:
        own = _outputs(recipe, model, None if head is None else head, batch, config)
        return {name: values for name, values in own.items() if name in classes}

    return Described(
        recipe, tokenizer, config, tensors, classes, main, purpose, told, computed, generation, kinds, remarks
    )


def _language(recipe: Recipe, module: PretrainingModel) -> dict[str, Head]:
    """The heads that score tokens, by class of transformers; one head, since there is one file of weights."""
    config = module.model.config
    learnt = None if module.generating is None else module.generating.learns
    found: dict[str, Head] = {}
    for part, objective in zip(recipe.objective, module.objectives, strict=True):
        if objective.name == learnt or config.directions == 2:
            continue
        if part.scoring == "masked" or part.from_before:
            found.setdefault("AutoModelForMaskedLM", objective.head)
        elif part.writes:
            found.setdefault(
                "AutoModelForSeq2SeqLM" if config.sequence_to_sequence else "AutoModelForCausalLM", objective.head
            )
    first = next(iter(found.values()), None)
    return {name: head for name, head in found.items() if head is first}


def _generation(tokenizer: Tokenizer, banned: list[int] | None = None) -> dict[str, Any]:
    """How it writes: as `bakeoff generate` does, the likeliest token unless asked to sample."""
    return {
        "pad_token_id": tokenizer.pad,
        "eos_token_id": tokenizer.separator,
        "bos_token_id": tokenizer.opening,
        "decoder_start_token_id": tokenizer.start,
        "suppress_tokens": [*never_written(tokenizer), *(banned or [])],
    }


def _outputs(
    recipe: Recipe, model: Model, head: Head | None, batch: InputBatch, config: dict[str, Any]
) -> dict[str, Tensor]:
    """What a pre-trained model computes of a batch."""
    ids, segments, real = batch
    segments = segments if config["uses_segments"] else None
    counts = torch.full_like(ids[:, 0], ids.shape[1]) if real is None else real.sum(1)
    both = counts if recipe.reads_both_sides else None
    table = model.embedding.table

    def scores(hidden: Tensor) -> Tensor:
        assert head is not None
        found: Tensor = head.scores(hidden.flatten(0, 1), table)
        return found.view(*hidden.shape[:2], -1)

    if recipe.model.sequence_to_sequence:
        source = Source(ids[:, 1:], None if real is None else real[:, 1:])
        found = {"AutoModel": model(Inputs(ids, real=real, source=source))}
        if head is not None:
            found["AutoModelForSeq2SeqLM"] = scores(model(Inputs(ids, real=None, source=Source(ids, real))))
        return found
    hidden = model(Inputs(ids, segments, real, prefix=both))
    found = {"AutoModel": hidden}
    if head is not None:
        logits = scores(hidden)
        if config.get("from_before"):
            logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
        found["AutoModelForMaskedLM"] = logits
        if recipe.model.causal:
            forwards = hidden if both is None else model(Inputs(ids, None, real))
            found["AutoModelForCausalLM"] = scores(forwards)
    return found


def _finetuned(run: FinetunedRun) -> Described:
    recipe, tokenizer, task, head = run.recipe, run.tokenizer, run.learned, run.load()
    assert run.config.length is not None
    if isinstance(head, WritingHead):
        return _writing(recipe, tokenizer, head, run.config.length)
    kind = run.task.kind
    if kind not in _OF_KINDS or not isinstance(head, LinearHead):
        raise UserError(f"{run.path}: transformers has nothing like a run for {kind}")
    config = _settings(recipe, tokenizer, head.model, run.config.length)
    names: list[str] = list(run.results.classes)
    if not names:
        names = ["LABEL_0"] if kind == "regression" else ["start", "end"]
    if kind == "multilabel" and isinstance(task.labels, list):
        names = task.labels
    auto, purpose = _OF_KINDS[kind]
    config |= {"id2label": dict(enumerate(names)), "label2id": {name: place for place, name in enumerate(names)}}
    if kind == "choice":
        config |= {"id2label": {0: "choice"}, "label2id": {"choice": 0}}
    config["problem_type"] = _PROBLEMS.get(kind)
    config["task_head"] = {
        "pooling": run.config.pooling,
        "dropout": run.config.dropout,
        "layers": run.config.layers,
        "kind": kind,
    }
    tensors = {}
    for name, tensor in head.state_dict().items():
        if not name.startswith("heads."):
            tensors[f"model.network.{name.removeprefix('model.')}" if name.startswith("model.") else name] = tensor
    remarks = []
    scale, shift = 1.0, 0.0
    if isinstance(task, Regression):  # what it was learned from had a mean of 0 and a deviation of 1
        scale, shift = task.deviation, task.mean
        tensors["output.weight"] = tensors["output.weight"] * scale
        tensors["output.bias"] = tensors["output.bias"] * scale + shift
    if run.config.truncate != "head":
        remarks.append(f"of texts that are too long pipelines read the beginning, and not {run.config.truncate}")
    if kind == "tagging":
        remarks.append("pipelines tag token by token, and do not refuse tags that cannot follow each other")
    told = TokenizerSettings(_frame(recipe, kind == "question_answering"), run.config.length, config["uses_segments"])

    def computed(batch: InputBatch) -> dict[str, Tensor]:
        own = batch if config["uses_segments"] else batch._replace(segments=None)
        values = head(own) * scale + shift
        return {auto: values.view(1, -1) if kind == "choice" else values}

    classes = {"AutoModel": "BakeoffModel", auto: TASK_CLASSES[auto]}
    return Described(recipe, tokenizer, config, tensors, classes, auto, purpose, told, computed, None, [], remarks)


def _writing(recipe: Recipe, tokenizer: Tokenizer, head: WritingHead, length: int) -> Described:
    """A run that writes a target for a source."""
    config = _settings(recipe, tokenizer, head.model, length)
    settings = _head_settings(head.writer, head.model)
    if settings is None:
        raise UserError("the head that writes is one of a plugin, which cannot go along")
    config["language_head"] = settings
    source = recipe.model.sequence_to_sequence
    auto = "AutoModelForSeq2SeqLM" if source else "AutoModelForCausalLM"
    tensors = {f"model.network.{name}": tensor for name, tensor in head.model.state_dict().items()}
    tensors |= {f"language.{name}": tensor for name, tensor in head.writer.state_dict().items()}
    told = TokenizerSettings("source" if source else "prompt", length, writes=not source, marks=recipe.extra_tokens)

    def computed(batch: InputBatch) -> dict[str, Tensor]:
        own = _outputs(recipe, head.model, head.writer, batch, config)
        return {name: values for name, values in own.items() if name in ("AutoModel", auto)}

    classes = {"AutoModel": "BakeoffModel", auto: auto.replace("AutoModel", "Bakeoff")}
    generation = _generation(tokenizer, list(head.marks))
    kinds = [settings["kind"]]
    return Described(
        recipe,
        tokenizer,
        config,
        tensors,
        classes,
        auto,
        None if source else "text-generation",
        told,
        computed,
        generation,
        kinds,
    )
