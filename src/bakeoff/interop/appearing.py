"""Output folders that get their name only when they are complete; an unfinished folder is removed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bakeoff.durable import as_new, fresh, holds_something, remove, sync
from bakeoff.errors import UserError
from bakeoff.extras import missing


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
