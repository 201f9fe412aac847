"""Files that are on the disk whole, or not at all, and folders that one process at a time writes to."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff.errors import UserError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


def sync(path: Path) -> None:
    """Have a file's or folder's content on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: str) -> None:
    """Replace a text file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(content, encoding="utf-8")
    sync(partial)
    partial.replace(path)


@contextmanager
def held(folder: Path, name: Path | str | None = None, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Keep other processes of Bakeoff out of a folder; the system lets go of it when the process ends.

    Args:
        folder: what is written to.
        name: what the user calls it; left out, `folder`.
        waiting: called where another process holds it, to wait for that one instead of raising an error.

    Raises:
        UserError: another process holds it.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise UserError(
                    f"{name or folder}: another process is writing here; wait for it, or choose another --out"
                ) from None
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


@contextmanager
def fresh(folder: Path, name: Path) -> Iterator[None]:
    """Make a folder anew and hold it; what a killed process has left there is removed.

    Args:
        folder: a temporary place beside `name`.
        name: what it is to become.

    Raises:
        UserError: another process is at it.
    """
    if folder.exists():
        with held(folder, name):
            shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with held(folder, name):
        yield
