"""Handing a run on to other tools; one function for each form, which is imported when it is asked for."""

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.interop.exported import Exported

FORMS = {
    "hf": "bakeoff.interop.hugging_face.export",
    "onnx": "bakeoff.interop.onnx.export",
    "sentence-transformers": "bakeoff.interop.sentence_transformers",
    "gguf": "bakeoff.interop.gguf.export",
}
"""For each form the module whose `export(run, out, **options)` writes it."""


def export(run: str | Path, out: str | Path, *, to: str = "hf", **options: Any) -> Exported:
    """Write a run in the form of another tool, read it back, and compare what both compute.

    Args:
        run: a pre-trained or fine-tuned run.
        out: the folder to make; it appears when it is complete and compared.
        to: hf, onnx, sentence-transformers or gguf.
        options: of the form, see docs/export.md.

    Raises:
        UserError: no such run or form; the form has nothing like the run; the folder is there; a library is missing;
            what was read back computes something else.
    """
    if to not in FORMS:
        raise UserError(f"--to {to}: no such form; there are {', '.join(FORMS)}")
    write: Callable[..., Exported] = import_module(FORMS[to]).export
    takes = signature(write).parameters
    for name in options:
        if name not in takes:
            raise UserError(f"--{name.replace('_', '-')}: --to {to} has no such option")
    return write(Path(run), Path(out), **options)
