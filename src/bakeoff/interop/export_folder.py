"""The folder of an export: it gets its name only when it is complete, and what is said of it then."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.durable import as_new, fresh, holds_something, remove, sync
from bakeoff.errors import UserError
from bakeoff.extras import missing


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


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out`, renamed to `out` at the end, or removed if anything fails.

    Raises:
        UserError: `out` holds something, or the folder cannot be made.
    """
    require_free(out)
    folder = out.absolute().with_name(f".{out.absolute().name}.partial")
    try:
        with fresh(folder, out):
            try:
                yield folder
                for file in folder.rglob("*"):
                    if file.is_file():
                        as_new(file)
                    sync(file)
                require_free(out)
                if out.is_dir():
                    out.rmdir()  # an empty one
                folder.rename(out)
                sync(out.absolute().parent)
            finally:
                remove(folder)
    except OSError as error:
        raise UserError(f"{out}: cannot be made: {error.strerror or error}") from None


def require_free(out: Path) -> None:
    """Refuse an output path that is taken.

    Raises:
        UserError: `out` is a link, a file or a folder that is not empty.
    """
    if out.is_symlink() or holds_something(out):
        raise UserError(f"{out}: holds something already; choose another --out")


def library(name: str, extra: str) -> Any:
    """Import an optional library.

    Raises:
        UserError: the library is not installed; `extra` names the extra of Bakeoff that brings it.
    """
    try:
        return import_module(name)
    except ImportError:
        raise missing(f"--to {extra} needs the library {name.partition('.')[0]}", extra) from None


def write_json(path: Path, values: Any) -> None:
    """Write values as transformers formats its own files, with sorted keys, so that equal values give equal files."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
