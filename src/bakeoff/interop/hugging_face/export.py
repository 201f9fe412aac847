"""A run in the form of transformers: by the family that has its model, else with code of its own."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.durable import fresh, holds_something, remove, sync
from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported
from bakeoff.interop.families.task_heads import TaskPart
from bakeoff.interop.hugging_face.choice import Choice, choose
from bakeoff.interop.hugging_face.folder import CONFIG, GENERATION, WEIGHTS, to_text
from bakeoff.interop.hugging_face.importing import LEFT
from bakeoff.interop.hugging_face.reloading import pretrained_difference, task_difference
from bakeoff.interop.hugging_face.task_export import require_plain, task_config, task_part, task_tensors
from bakeoff.interop.hugging_face.tokenizer_files import token_ids, with_marks, write_tokenizer
from bakeoff.interop.model_card import model_card
from bakeoff.interop.tensors_across import give
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors, save_tensors

PURPOSES = {
    "ForMaskedLM": "fill-mask",
    "ForPreTraining": None,
    "ForCausalLM": "text-generation",
    "ForSeq2SeqLM": None,
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMultipleChoice": None,
}
"""How the names of architectures end, and transformers' name of what such a model is for; none has no pipeline."""

SKIPPED = ("auto_map", "_name_or_path", "transformers_version", "torch_dtype", "id2label", "label2id", "problem_type")
"""Keys of an imported config.json that do not go out again: they name code or places, or are said anew."""


def export(run: Path, out: Path) -> Exported:
    """Write config.json, model.safetensors and the tokenizer's files, load them with transformers, and compare.

    Raises:
        UserError: no such run, or not finished; `out` holds something; what was read back computes something else.
    """
    if holds_something(out):
        raise UserError(f"{out}: holds something already; choose another --out")
    source: Run | FinetunedRun = FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run)
    imported: dict[str, Any] = source.environment.get("imported") or {}
    task: TaskPart | None = None
    if isinstance(source, FinetunedRun):
        source.require_current()
        task = task_part(source)
    chosen = choose(source.recipe, source.tokenizer, imported.get("model_type"), task)
    if not isinstance(chosen, dict) and isinstance(source, FinetunedRun) and (reason := require_plain(source)):
        chosen = {"any family": reason}
    if isinstance(chosen, dict) and find_spec("transformers") is None:
        raise UserError("transformers is needed to read back what this model goes out as: pip install 'bakeoff[hub]'")
    largest: float | None
    partial = out.absolute().with_name(f".{out.name}.partial")
    try:
        with fresh(partial, out):
            if isinstance(chosen, dict):
                # Here, because it takes a second to import: it reads the source of all parts.
                from bakeoff.interop.remote_code.export import export as write_with_code

                largest, main, remarks = write_with_code(run, partial)
                arguments = f"{str(out)!r}, trust_remote_code=True"
            else:
                largest = _write(source, chosen, partial)
                main, arguments = chosen.config["architectures"][0], repr(str(out))
                remarks = [*imported.get("remarks", []), *([] if task else chosen.family.remarks(source.recipe))]
                if largest is None:
                    remarks.append("transformers is not installed, so that nothing was compared")
                card = model_card(run, *_auto_class(main), remarks, own_code=False)
                (partial / "README.md").write_text(card, encoding="utf-8")
            for file in partial.iterdir():
                sync(file)
            if out.exists():
                out.rmdir()
            partial.replace(out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}") from None
    finally:
        remove(partial)
    return Exported(out, "hf", f"transformers.{main}.from_pretrained({arguments})", largest, remarks)


def _auto_class(architecture: str) -> tuple[str, str | None]:
    """The class of transformers that loads an architecture of any family, and the name of its pipeline."""
    for ending, purpose in PURPOSES.items():
        if architecture.endswith(ending):
            return f"AutoModel{ending}", purpose
    return "AutoModel", "feature-extraction"


def _write(run: Run | FinetunedRun, chosen: Choice, folder: Path) -> float | None:
    """Write and compare; the largest difference, None where there is no transformers here."""
    imported = run.environment.get("imported")
    tokenizer = with_marks(run.tokenizer, run.recipe)
    config, rows, dtype = chosen.config, tokenizer.size, torch.float32
    if isinstance(run, Run) and imported and imported["model_type"] in chosen.family.model_types:
        rows, dtype = imported["rows"], getattr(torch, imported["dtype"])
        # What it says of other things stays, such as how its tokens are named.
        kept = {key: value for key, value in imported["config"].items() if key not in SKIPPED}
        config = kept | config | {"model_type": imported["model_type"]}
    named = {key: number for key, number in chosen.family.tokens(run.recipe, tokenizer).items() if number < rows}
    named |= token_ids(tokenizer, rows)
    config = named | config | {"vocab_size": rows, "dtype": str(dtype).split(".")[1]}
    if isinstance(run, FinetunedRun):
        config |= task_config(run)
    theirs = _tensors(run, chosen, rows, dtype)
    (folder / CONFIG).write_text(to_text(config), encoding="utf-8")
    save_tensors(theirs, folder / WEIGHTS, {"format": "pt"})
    write_tokenizer(tokenizer, run.recipe, folder, rows)
    if isinstance(run, Run) and any(part.writes for part in run.recipe.objective):
        (folder / GENERATION).write_text(to_text(named), encoding="utf-8")
    architecture = config["architectures"][0]
    if isinstance(run, FinetunedRun):
        return task_difference(run, folder, architecture)
    return pretrained_difference(run, chosen.family, folder, architecture)


def _tensors(run: Run | FinetunedRun, chosen: Choice, rows: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """Theirs, with so many rows of the table of tokens."""
    ours = task_tensors(run) if isinstance(run, FinetunedRun) else load_tensors(run.weights_file())
    for name in {name for link in chosen.links if link.vocabulary for name in link.ours}:
        ours[name] = ours[name][:rows]
    theirs = {name: tensor.to(dtype) for name, tensor in give(chosen.links, ours).items()}
    left = run.path / LEFT
    if isinstance(run, Run) and left.is_file():
        theirs |= load_tensors(left)
    return theirs
