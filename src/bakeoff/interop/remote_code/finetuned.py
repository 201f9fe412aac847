"""The description of a fine-tuned run for its export with code."""

from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.interop.families.bakeoff_family import TRAINED_HEAD
from bakeoff.interop.families.task_heads import ANSWERS, CHOICES, PURPOSES
from bakeoff.interop.hugging_face import bakeoff_settings
from bakeoff.interop.hugging_face.task_export import on_scale, remarks_of_labels
from bakeoff.interop.remote_code.described import TASK_CLASSES, Described
from bakeoff.interop.remote_code.pretrained import outputs_of
from bakeoff.interop.remote_code.settings import generation_of, head_settings, settings_of
from bakeoff.interop.tokenizer_files import TokenizerSettings, frame_of
from bakeoff.interop.writing_task import generation_limit, remarks_of_task, writing_rows
from bakeoff.row import Row
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import LinearHead
from bakeoff.tasks.heads.transform import transform_of
from bakeoff.tasks.heads.writing_head import WritingHead


def describe_finetuned(run: FinetunedRun) -> Described:
    """The description of a fine-tuned run.

    Raises:
        UserError: transformers has no class for its kind of task, or its head is a plugin's.
    """
    recipe, tokenizer, task, head = run.recipe, run.tokenizer, run.learned, run.load()
    assert run.config.length is not None
    if isinstance(head, WritingHead):
        return _writing(run, head)
    exported, kind = run.task.exported, run.task.kind
    if exported is None or not isinstance(head, LinearHead):
        raise UserError(f"{run.path}: transformers has nothing like a run for {kind}; --to onnx can take it")
    config = settings_of(recipe, tokenizer, head.model, run.config.length)
    auto, purpose = f"AutoModelFor{exported.ending}", PURPOSES[exported.ending]
    names = ["LABEL_0"] if exported.problem_type == "regression" else task.output_names
    config |= {"id2label": dict(enumerate(names)), "label2id": {name: number for number, name in enumerate(names)}}
    config["problem_type"] = exported.problem_type
    config["task_head"] = {
        "pooling": run.config.pooling,
        "pooler": run.config.pooler,
        "dropout": run.config.dropout,
        "layers": run.config.layers,
        "kind": kind,
    }
    if run.config.transform:
        config["task_head"]["transform"] = transform_of(recipe)._asdict()
    config |= bakeoff_settings.written(run)
    tensors = {}
    for name, tensor in head.state_dict().items():
        if not name.startswith("heads."):
            tensors[f"model.network.{name.removeprefix('model.')}" if name.startswith("model.") else name] = tensor
    scale, shift = task.output_scale
    tensors = on_scale(tensors, task.output_scale)
    tokenizer_settings = TokenizerSettings(
        frame_of(recipe, exported.ending == ANSWERS),
        run.config.length,
        config["uses_segments"],
        separators=run.config.separators,
        plain=True,
    )

    def computed(batch: Row[Tensor]) -> dict[str, Tensor]:
        inputs = batch if config["uses_segments"] else batch._replace(segments=None)
        values = head(inputs) * scale + shift
        return {auto: values.view(1, -1) if exported.ending == CHOICES else values}

    classes = {"AutoModel": "BakeoffModel", auto: TASK_CLASSES[auto]}
    return Described(
        recipe,
        tokenizer,
        config,
        tensors,
        classes,
        auto,
        purpose,
        tokenizer_settings,
        computed,
        remarks=remarks_of_labels(run),
    )


def _writing(run: FinetunedRun, head: WritingHead) -> Described:
    """The description of a run that generates texts."""
    recipe, tokenizer, length = run.recipe, run.tokenizer, run.config.length
    assert length is not None
    config = settings_of(recipe, tokenizer, head.model, length)
    settings = head_settings(head.writer, head.model)
    if settings is None:
        raise UserError("the head that writes is one of a plugin, which cannot go along")
    config |= {"language_head": settings, TRAINED_HEAD: head.owner.kind, **bakeoff_settings.written(run)}
    source = recipe.model.sequence_to_sequence
    auto = "AutoModelForSeq2SeqLM" if source else "AutoModelForCausalLM"
    tensors = {f"model.network.{name}": tensor for name, tensor in head.model.state_dict().items()}
    tensors |= {f"language.{name}": tensor for name, tensor in head.writer.state_dict().items()}
    rows = writing_rows(run)
    tokenizer_settings = TokenizerSettings(
        "source" if source else "prompt",
        length if rows is None else rows.longest_source,
        generates=not source,
        pads_before=not source,
        marks=recipe.extra_tokens,
        plain=True,
    )

    def computed(batch: Row[Tensor]) -> dict[str, Tensor]:
        outputs = outputs_of(recipe, head.model, head.writer, batch, config)
        return {name: values for name, values in outputs.items() if name in ("AutoModel", auto)}

    classes = {"AutoModel": "BakeoffModel", auto: auto.replace("AutoModel", "Bakeoff")}
    generation = generation_of(tokenizer, list(head.marks)) | generation_limit(run)
    kinds = [settings["kind"]]
    return Described(
        recipe,
        tokenizer,
        config,
        tensors,
        classes,
        auto,
        None if source else "text-generation",
        tokenizer_settings,
        computed,
        generation,
        kinds,
        remarks_of_task(run),
    )
