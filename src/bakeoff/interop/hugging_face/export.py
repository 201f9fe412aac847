"""A run in the form of transformers: by the family that has its model, else with code of its own."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.durable import fresh, remove
from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported
from bakeoff.interop.families.task_heads import TaskPart
from bakeoff.interop.hugging_face.choice import Choice, choose
from bakeoff.interop.hugging_face.folder import CONFIG, GENERATION, WEIGHTS, to_text
from bakeoff.interop.hugging_face.importing import LEFT
from bakeoff.interop.hugging_face.reloading import pretrained_difference, task_difference
from bakeoff.interop.hugging_face.task_export import require_plain, task_config, task_part, task_tensors
from bakeoff.interop.hugging_face.tokenizer_files import token_ids, with_marks, write_tokenizer
from bakeoff.interop.tensors_across import give
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors, save_tensors

REMOTE_CODE = "bakeoff.interop.remote_code.export"
"""What writes models that transformers has no class for."""
SKIPPED = ("auto_map", "_name_or_path", "transformers_version", "torch_dtype", "id2label", "label2id", "problem_type")
"""Keys of an imported config.json that do not go out again: they name code or places, or are said anew."""


def export(run: Path, out: Path) -> Exported:
    """Write config.json, model.safetensors and the tokenizer's files, load them with transformers, and compare.

    Raises:
        UserError: no such run, or not finished; `out` holds something; what was read back computes something else.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
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
    partial = out.with_name(f".{out.name}.partial")
    try:
        with fresh(partial, out):
            if isinstance(chosen, dict):
                largest, architecture, remarks = _with_code_of_its_own(run, partial, chosen)
                line = f"transformers.{architecture}.from_pretrained({str(out)!r}, trust_remote_code=True)"
            else:
                largest = _write(source, chosen, partial)
                line = f"transformers.{chosen.config['architectures'][0]}.from_pretrained({str(out)!r})"
                remarks = [*imported.get("remarks", []), *([] if task else chosen.family.remarks(source.recipe))]
                if largest is None:
                    remarks.append("transformers is not installed, so that nothing was compared")
            if out.exists():
                out.rmdir()
            partial.replace(out)
    except BaseException:
        remove(partial)
        raise
    return Exported(out, "hf", line, largest, remarks)


def _with_code_of_its_own(run: Path, folder: Path, reasons: dict[str, str]) -> tuple[float | None, str, list[str]]:
    """Write what no family of transformers has, with a file of code beside the weights.

    Args:
        run: the run.
        folder: to write to; it is empty.
        reasons: why not, by family.

    Returns:
        The largest difference of what both compute, the class that it loads with, and what does not go along.
    """
    try:
        write: Callable[[Path, Path], tuple[float, str, list[str]]] = import_module(REMOTE_CODE).export
    except ModuleNotFoundError as error:
        if not REMOTE_CODE.startswith(str(error.name)):
            raise
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise UserError(f"{run}: no family of transformers has this model ({why})") from None
    return write(run, folder)


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
