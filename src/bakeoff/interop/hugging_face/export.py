"""`--to hf`: a run for transformers, as a model of a known family, else with code of its own."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.extras import missing
from bakeoff.generation.generate import never_written
from bakeoff.interop.export import Exported, write_json
from bakeoff.interop.families.task_heads import ANSWERS
from bakeoff.interop.hugging_face import bakeoff_settings
from bakeoff.interop.hugging_face.family_choice import FamilyChoice, choose
from bakeoff.interop.hugging_face.folder import CONFIG, GENERATION, WEIGHTS
from bakeoff.interop.hugging_face.importing import LEFT
from bakeoff.interop.hugging_face.reloading import pretrained_difference, task_difference
from bakeoff.interop.hugging_face.task_export import (
    head_form,
    remarks_of_labels,
    require_bias,
    require_plain,
    task_config,
    task_tensors,
)
from bakeoff.interop.model_card import model_card
from bakeoff.interop.tensors_across import give
from bakeoff.interop.tokenizer_files import TokenizerSettings, frame_of, with_marks, write_tokenizer
from bakeoff.interop.writing_task import generation_limit, remarks_of_task
from bakeoff.runs.checkpoint import run_folder
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors, save_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.unfinished import require_free, unfinished

AUTO_CLASSES: dict[str, tuple[str, str | None]] = {
    "ForMaskedLM": ("ForMaskedLM", "fill-mask"),
    "ForPreTraining": ("ForPreTraining", None),
    "XLNetLMHeadModel": ("ForCausalLM", None),  # which its training has not taught to go on with a text
    "LMHeadModel": ("ForCausalLM", "text-generation"),
    "ForConditionalGeneration": ("ForSeq2SeqLM", None),
    "ForSequenceClassification": ("ForSequenceClassification", "text-classification"),
    "ForTokenClassification": ("ForTokenClassification", "token-classification"),
    "ForQuestionAnswering": ("ForQuestionAnswering", "question-answering"),
    "ForQuestionAnsweringSimple": ("ForQuestionAnswering", "question-answering"),
    "ForMultipleChoice": ("ForMultipleChoice", None),
}
"""By the ending of an architecture's name the ending of the AutoModel class and the pipeline; None: there is none."""

OF_HEADS = ("id2label", "label2id", "problem_type")
"""Keys of a config.json that name the outputs of a head."""
SKIPPED = (
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "torch_dtype",
    "quantization_config",
    *(f"{prefix}{part}_implementation" for prefix in ("", "_") for part in ("attn", "experts")),
    "num_labels",
    bakeoff_settings.KEY,
    *OF_HEADS,
)
"""Keys of an imported config.json that an export drops: they name code or paths, are written anew, or make transformers
take memory for as many labels as they say."""


def export(run: Path, out: Path) -> Exported:
    """Write config.json, model.safetensors and the tokenizer's files, load them with transformers, and compare.

    Raises:
        UserError: the run does not exist or is not finished; `out` holds something; the reloaded model computes other
            numbers.
    """
    require_free(out)
    source: Run | FinetunedRun = FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run)
    chosen = _chosen(source)
    if isinstance(chosen, dict) and find_spec("transformers") is None:
        raise missing("the check of this model's export needs transformers", "hub")
    largest: float | None
    with unfinished(out) as folder:
        if isinstance(chosen, dict):
            # Here, because it takes a second to import: it reads the source of all parts.
            from bakeoff.interop.remote_code.export import export as write_with_code

            largest, main, remarks = write_with_code(run, folder)
            arguments = f"{str(out)!r}, trust_remote_code=True"
        else:
            largest, remarks = _write(source, chosen, folder)
            main, arguments = chosen.config["architectures"][0], repr(str(out))
            card = model_card(run, *_auto_class(main), remarks, has_code=False)
            (folder / "README.md").write_text(card, encoding="utf-8")
    return Exported(out, "hf", f"transformers.{main}.from_pretrained({arguments})", largest, remarks)


def _chosen(source: Run | FinetunedRun) -> FamilyChoice | dict[str, str]:
    """The family that can express the run, or the reason against each family."""
    preferred = (source.environment.get("imported") or {}).get("model_type")
    if isinstance(source, Run):
        return choose(source.recipe, source.tokenizer, preferred)
    source.require_current()
    if source.task.head == "writing":
        return chosen_writer(source, preferred)
    if reason := require_plain(source):
        return {"any family": reason}
    chosen = choose(source.recipe, source.tokenizer, preferred, head_form(source))
    if isinstance(chosen, FamilyChoice) and chosen.head is not None and (reason := require_bias(source, chosen.head)):
        return {chosen.family.model_types[0]: reason}
    return chosen


def _auto_class(architecture: str) -> tuple[str, str | None]:
    """The AutoModel class that loads an architecture, and the name of its pipeline; None: there is no pipeline."""
    for ending, (auto, purpose) in AUTO_CLASSES.items():
        if architecture.endswith(ending):
            return f"AutoModel{auto}", purpose
    return "AutoModel", "feature-extraction"


def token_ids(tokenizer: Tokenizer, rows: int) -> dict[str, int]:
    """Ids of special tokens below `rows`, by their keys in config.json."""
    names = {"pad_token_id": tokenizer.pad, "cls_token_id": tokenizer.start, "sep_token_id": tokenizer.separator}
    return {key: number for key, number in names.items() if number < rows}


def _write(run: Run | FinetunedRun, chosen: FamilyChoice, folder: Path) -> tuple[float | None, list[str]]:
    """Write and compare; returns the largest difference (None: transformers is not installed) and the remarks."""
    imported = run.environment.get("imported")
    tokenizer = with_marks(run.tokenizer, run.recipe.extra_tokens)
    config, rows, dtype = chosen.config, tokenizer.size, torch.float32
    if imported and imported["model_type"] in chosen.family.model_types:
        rows, dtype = imported["rows"], getattr(torch, imported["dtype"])
        if rows > tokenizer.size:
            raise UserError(
                f"{run.path}/environment.json: imported.rows: {rows:,} rows, but the tokenizer has {tokenizer.size:,} "
                "tokens"
            )
        # Keys about anything else stay, such as names of tokens.
        kept = {key: value for key, value in imported["config"].items() if key not in SKIPPED}
        config = kept | config | {"model_type": imported["model_type"]}
    named = {key: number for key, number in chosen.family.tokens(run.recipe, tokenizer).items() if number < rows}
    named |= token_ids(tokenizer, rows)
    config = named | config | {"vocab_size": rows, "dtype": str(dtype).split(".")[1]}
    if isinstance(run, FinetunedRun):
        said = (imported or {}).get("config", {})
        config |= task_config(run) | {key: said[key] for key in OF_HEADS if key in said} | bakeoff_settings.written(run)
    theirs = _tensors(run, chosen, rows, dtype)
    write_json(folder / CONFIG, config)
    save_tensors(theirs, folder / WEIGHTS, {"format": "pt"})
    remarks = list(imported["remarks"]) if imported else []
    remarks += write_tokenizer(tokenizer, folder, _tokenizer_settings(run, chosen, rows))
    architecture = config["architectures"][0]
    if _has_labels(run):
        remarks += remarks_of_labels(run)
        largest = task_difference(run, folder, architecture, chosen.head is not None and chosen.head.pads_before)
    else:
        if isinstance(run, FinetunedRun):
            named |= generation_of_task(run, named)
            remarks += remarks_of_task(run)
        if any(part.generates for part in run.recipe.objective):
            write_json(folder / GENERATION, named)
        largest = pretrained_difference(run, chosen.family, folder, architecture)
        remarks += chosen.family.remarks(run.recipe)
    if largest is None:
        remarks.append("transformers is not installed, so that nothing was compared")
    return largest, remarks


def _has_labels(run: Run | FinetunedRun) -> TypeGuard[FinetunedRun]:
    """Whether the run was fine-tuned to answer with labels or numbers, not with texts that it writes."""
    return isinstance(run, FinetunedRun) and run.task.head != "writing"


def _tokenizer_settings(run: Run | FinetunedRun, chosen: FamilyChoice, rows: int) -> TokenizerSettings:
    """The tokenizer's settings that the model needs."""
    recipe, generates = run.recipe, False
    longest = recipe.model.longest_input if isinstance(run, Run) else run.config.length
    segments = recipe.model.embedding.segments >= 2 or any(mixer.reads_segments for mixer in recipe.model.mixers)
    if _has_labels(run):
        exported = run.task.exported
        frame = frame_of(recipe, exported is not None and exported.ending == ANSWERS)
    elif recipe.model.sequence_to_sequence:
        frame = "start" if recipe.objective[0].before_source(run.tokenizer) else "source"
    else:
        generates = recipe.model.encoder is None
        frame = "opening" if generates else frame_of(recipe)
    return TokenizerSettings(
        frame,
        longest,
        segments,
        generates=generates,
        pads_before=generates or (chosen.head is not None and chosen.head.pads_before),
        cleans=isinstance(run, FinetunedRun),
        marks=recipe.extra_tokens,
        separators=run.config.separators if isinstance(run, FinetunedRun) else 1,
        plain=isinstance(run, FinetunedRun),
        rows=rows,
    )


def _tensors(run: Run | FinetunedRun, chosen: FamilyChoice, rows: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """The tensors under their names, with `rows` rows in the table of tokens."""
    if isinstance(run, FinetunedRun):
        assert chosen.head is not None
        ours = task_tensors(run, chosen.head)
    else:
        ours = load_tensors(run.weights_file())
    for name in {name for link in chosen.links if link.vocabulary for name in link.ours}:
        ours[name] = ours[name][:rows]
    theirs = {name: tensor.to(dtype) for name, tensor in give(chosen.links, ours).items()}
    left = run_folder(run.path) / LEFT
    return theirs | (load_tensors(left) if left.is_file() else {})


def chosen_writer(run: FinetunedRun, preferred: str | None) -> FamilyChoice | dict[str, str]:
    """The family that can express the run's model and head, or the reason against each family.

    Args:
        run: a run that generates text.
        preferred: the `model_type` that the run was imported with; None: it was not imported.
    """
    recipe = run.recipe
    if not recipe.model.sequence_to_sequence or len(recipe.objective) > 1:
        return {"any family": "it is no encoder with a decoder that has learnt to write alone"}
    chosen = choose(recipe, run.tokenizer, preferred)
    if not isinstance(chosen, FamilyChoice):
        return chosen
    head = chosen.family.writing(chosen.config["architectures"][0], recipe)
    return chosen._replace(links=[*chosen.family.body(recipe), *head.links], head=head)


def generation_of_task(run: FinetunedRun, named: Mapping[str, int]) -> dict[str, Any]:
    """Keys of generation_config.json: the largest length of an answer, and tokens that are never written.

    Args:
        run: a run that generates text.
        named: ids of the tokens that the decoder begins with, by transformers' keys.
    """
    size = run.tokenizer.size
    marks = range(size, size + run.recipe.extra_tokens)
    banned = {*never_written(run.tokenizer), *marks} - {named.get("forced_bos_token_id")}
    return {**generation_limit(run), "suppress_tokens": sorted(banned)}
