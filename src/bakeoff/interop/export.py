"""Export of a run to other tools; the module of a form is imported when that form is asked for."""

import json
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.errors import UserError, path_of
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.unfinished import require_free
from bakeoff.vectors.taught import FILE as VECTORS

FORMS = {
    "hf": "bakeoff.interop.hugging_face.export",
    "onnx": "bakeoff.interop.onnx.export",
    "sentence-transformers": "bakeoff.interop.sentence_transformers",
    "gguf": "bakeoff.interop.gguf.export",
}
"""The module of each form; its `export(run, out, **options)` writes the form."""


class Exported(NamedTuple):
    """An export of a run, which was reloaded and compared before its folder got its name."""

    path: Path
    """The folder that was made."""
    form: str
    """The form of the export: hf, onnx, sentence-transformers or gguf."""
    loads_with: str
    """A line of Python or shell that loads the export."""
    largest_difference: float | None
    """Largest difference between the outputs of the run and of the export for the same rows: absolute for hf, a share
    of the largest number for onnx and sentence-transformers. None: outputs were not compared (gguf, int8, or the
    library to compare with is not installed)."""
    remarks: list[str]
    """Sentences for the user: what the export leaves out, and what was not compared."""


def export(run: str | Path, out: str | Path, *, to: str = "hf", **options: Any) -> Exported:
    """Write a run in the form of another tool, read it back, and compare what both compute.

    Args:
        run: a pre-trained or fine-tuned run.
        out: the folder to make; it gets this name only when it is complete and compared.
        to: format: hf, onnx, sentence-transformers or gguf.
        options: options of the form, see docs/export.md.

    Raises:
        UserError: the run or the form does not exist; the form cannot express the run; `out` holds something; a library
            is missing; the reloaded export computes other numbers.
    """
    if to not in FORMS:
        raise UserError(f"--to {to}: no such form; there are {', '.join(FORMS)}")
    write: Callable[..., Exported] = import_module(FORMS[to]).export
    takes = signature(write).parameters
    for name in options:
        if name not in takes:
            raise UserError(f"--{name.replace('_', '-')}: --to {to} has no such option")
    run, out = path_of(run), path_of(out, "out")
    require_free(out)
    _require_sizes(run)
    exported = write(run, out, **options)
    if to in ("hf", "onnx") and (run / VECTORS).is_file():
        exported.remarks.append(
            "what `contrast` has taught beside the model (weights of tokens, a linear layer) does not go along; "
            "`--to sentence-transformers` writes it, for the runs that it takes"
        )
    return exported


def _require_sizes(run: Path) -> None:
    """Refuse a recipe whose sizes the weights have not, before a library takes memory for them.

    Raises:
        UserError: there is no such run, or its weights are damaged or another recipe's.
    """
    (FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run)).require_sizes()


def write_json(path: Path, values: Any) -> None:
    """Write values as transformers formats its files, with sorted keys, so that equal values give equal files."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
