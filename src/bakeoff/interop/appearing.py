"""A folder that is made: it has its name when it is complete, and nothing is left of one that is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bakeoff.durable import fresh, holds_something, remove, sync
from bakeoff.errors import UserError


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end; whatever goes wrong inside, it is removed.

    Raises:
        UserError: something is there, or it cannot be made.
    """
    require_free(out)
    folder = out.absolute().with_name(f".{out.absolute().name}.partial")
    try:
        with fresh(folder, out):
            try:
                yield folder
                for file in folder.rglob("*"):
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
    """Refuse a place that holds something.

    Raises:
        UserError: it is no folder, or not an empty one.
    """
    if out.is_symlink() or holds_something(out):
        raise UserError(f"{out}: holds something already; choose another --out")


def library(name: str, extra: str) -> Any:
    """An optional library.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise UserError(
            f"--to {extra} needs the library {name.partition('.')[0]}; install it with `pip install 'bakeoff[{extra}]'`"
        ) from None
