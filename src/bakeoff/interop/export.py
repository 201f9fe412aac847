"""Export of a run to other tools; the module of a form is imported when that form is asked for."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.unfinished import require_free

FORMS = {
    "hf": "bakeoff.interop.hugging_face.export",
    "onnx": "bakeoff.interop.onnx.export",
    "sentence-transformers": "bakeoff.interop.sentence_transformers",
    "gguf": "bakeoff.interop.gguf.export",
}
"""The module of each form; its `export(run, out, **options)` writes the form."""


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
    require_free(Path(out))
    _require_sizes(Path(run))
    return write(Path(run), Path(out), **options)


def _require_sizes(run: Path) -> None:
    """Refuse a recipe whose sizes the weights have not, before a library takes memory for them.

    Raises:
        UserError: there is no such run, or its weights are damaged or another recipe's.
    """
    (FinetunedRun.open(run) if FinetunedRun.at(run) else Run.open_trained(run)).require_sizes()
