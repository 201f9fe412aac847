"""A run in the form of transformers: by the family that has its model, else with code of its own."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from bakeoff.durable import fresh, remove
from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported
from bakeoff.interop.families import Family
from bakeoff.interop.hugging_face.choice import choose
from bakeoff.interop.hugging_face.folder import CONFIG, WEIGHTS, to_text
from bakeoff.interop.hugging_face.importing import LEFT
from bakeoff.interop.hugging_face.reloading import largest_difference
from bakeoff.interop.hugging_face.tokenizer_files import token_ids, write_tokenizer
from bakeoff.interop.tensors_across import give
from bakeoff.runs.run import Run
from bakeoff.tensors import load_tensors, save_tensors

SKIPPED = ("auto_map", "_name_or_path", "transformers_version", "torch_dtype")
"""Keys of an imported config.json that do not go out again: they name code or places, or are said anew."""


def export(run: Path, out: Path) -> Exported:
    """Write config.json, model.safetensors and the tokenizer's files, load them with transformers, and compare.

    Raises:
        UserError: no such run, or not finished; `out` holds something; what was read back computes something else.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: holds something already; choose another --out")
    source = Run.open_trained(run)
    imported = source.environment.get("imported") or {}
    chosen = choose(source.recipe, source.tokenizer.config.kind, imported.get("model_type"))
    if isinstance(chosen, dict):
        return _with_code_of_its_own(run, out, chosen)
    family, config = chosen
    partial = out.with_name(f".{out.name}.partial")
    try:
        with fresh(partial, out):
            largest = _write(source, family, config, partial)
            if out.exists():
                out.rmdir()
            partial.replace(out)
    except BaseException:
        remove(partial)
        raise
    line = f"transformers.{config['architectures'][0]}.from_pretrained({str(out)!r})"
    return Exported(out, "hf", line, largest, list(imported.get("remarks", [])))


def _with_code_of_its_own(run: Path, out: Path, reasons: dict[str, str]) -> Exported:
    """Write what no family of transformers has, with a file of code beside the weights.

    Args:
        run: the run.
        out: the folder to make.
        reasons: why not, by family.
    """
    try:
        write: Callable[[Path, Path], Exported] = import_module("bakeoff.interop.remote_code.export").export
    except ModuleNotFoundError:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise UserError(f"{run}: no family of transformers has this model ({why})") from None
    return write(run, out)


def _write(run: Run, family: Family, config: dict[str, Any], folder: Path) -> float | None:
    """Write and compare; the largest difference, None where there is no transformers here."""
    imported = run.environment.get("imported")
    rows, dtype = run.tokenizer.size, torch.float32
    if imported and imported["model_type"] in family.model_types:
        rows, dtype = imported["rows"], getattr(torch, imported["dtype"])
        # What it says of other things stays, such as how its tokens are named.
        config = {key: value for key, value in imported["config"].items() if key not in SKIPPED} | config
    config |= {"vocab_size": rows, "dtype": str(dtype).removeprefix("torch."), **token_ids(run.tokenizer, rows)}
    ours = load_tensors(run.weights_file())
    links = family.links(run.recipe)
    theirs = give(links, ours)
    for link in links:
        if link.vocabulary:
            theirs |= {name: theirs[name][:rows].contiguous() for name in link.theirs}
    theirs = {name: tensor.to(dtype) for name, tensor in theirs.items()}
    if imported and (run.path / LEFT).is_file():
        theirs = load_tensors(run.path / LEFT) | theirs
    (folder / CONFIG).write_text(to_text(config), encoding="utf-8")
    save_tensors(theirs, folder / WEIGHTS, {"format": "pt"})
    write_tokenizer(run.tokenizer, run.recipe, folder, rows)
    return largest_difference(run, family, folder, config["architectures"][0])
