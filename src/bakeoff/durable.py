"""Files that are on the disk whole, or not at all, and folders that one process at a time writes to."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bakeoff.errors import UserError
from bakeoff.full_disk import full_disk

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


LIST = "bakeoff.sha256"
"""The name of the list of checksums in a folder, see `bakeoff.checksums`."""


def sync(path: Path) -> None:
    """Wait until a file's or a folder's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_new(path: Path) -> None:
    """Give a file the permissions of any new file here; libraries make some for their owner alone."""
    probe = beside(path)
    probe.touch()
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    path.chmod(mode)


def holds_something(path: Path, besides: str | None = None) -> bool:
    """Whether the path is taken by a file or by a folder that is not empty.

    Args:
        path: the path.
        besides: the name of a file that may be in the folder half-written, left by a process that was killed.
    """
    left = None if besides is None else f".{besides}.partial"
    return path.exists() and (not path.is_dir() or any(each.name != left for each in path.iterdir()))


def own_folder(folder: Path, inside: Path | None = None) -> Path:
    """A work folder, which Bakeoff may write to, empty and remove.

    A link is refused because its target is not Bakeoff's: the link may come from an archive that somebody has unpacked.

    Args:
        folder: the work folder, which need not exist yet, or a file.
        inside: a folder that the user has named. It may be a link; the folders between it and `folder` may not.

    Raises:
        UserError: the folder is a link, or holds one at any depth.
    """
    between = [] if inside is None else [path for path in folder.parents if path.is_relative_to(inside)]
    for path in (folder, *(path for path in between if path != inside)):
        if path.is_symlink():
            raise UserError(f"{path}: a link, and what it leads to is not to be written to; remove the link")
    without_links(folder)
    return folder


def without_links(folder: Path) -> None:
    """Refuse a folder that holds a link at any depth; the folder itself may be a link.

    Raises:
        UserError: the folder holds a link, which the message names.
    """
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(path, name)):
                raise UserError(
                    f"{os.path.join(path, name)}: a link, and what it leads to is not to be written to; remove the link"
                )


def remove(folder: Path, inside: Path | None = None) -> None:
    """Remove a work folder, if it is there, as far as the system lets.

    Raises:
        UserError: it is not `own_folder`.
    """
    own_folder(folder, inside)
    for path, _, files in os.walk(folder):
        if LIST in files:  # first, or a kill would leave files that are listed but absent
            with suppress(OSError):
                os.unlink(os.path.join(path, LIST))
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def removed_after_an_error(folder: Path, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Remove a folder if the work in it fails, unless `unless()` then says that the folder is of use."""
    try:
        yield
    except BaseException:
        if not unless():
            remove(folder.resolve())
        raise


def beside(path: Path) -> Path:
    """A free path beside a file, for new content until it takes the file's place; no link stands there either."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    return partial


def write_atomically(path: Path, content: str) -> None:
    """Replace a text file whole or not at all."""
    partial = beside(path)
    partial.write_text(content, encoding="utf-8")
    sync(partial)
    partial.replace(path)


@contextmanager
def appearing(out: Path) -> Iterator[BinaryIO]:
    """A new file beside `out`, open for writing and reading, which becomes `out` at the end.

    After an error the new file is removed. A file that has appeared at `out` meanwhile is not replaced.

    Raises:
        UserError: the file cannot be made, another process is writing it, or `out` is taken meanwhile.
        DiskFull: there is no space for it.
    """
    try:
        partial, file = _taken_beside(out)
    except OSError as error:
        raise UserError(f"{out}: cannot be made: {error.strerror}") from None
    try:
        with full_disk(out, lambda: "nothing was kept"):
            yield file
            file.flush()
            os.fsync(file.fileno())
        if out.exists() or out.is_symlink():
            raise UserError(f"{out}: has been made meanwhile, by another program; nothing was kept")
        if fcntl is None:
            file.close()  # or it cannot be renamed
        partial.replace(out)  # while it is held: nobody else writes to it
        file.close()
    except BaseException:
        partial.unlink(missing_ok=True)
        with suppress(OSError):  # of what was still to be written
            file.close()
        raise


def _taken_beside(out: Path) -> tuple[Path, BinaryIO]:
    """The empty file beside `out`, for this process alone; the content that a killed process left in it is removed.

    Raises:
        UserError: another process is writing to it.
        OSError: it cannot be made.
    """
    partial = out.with_name(f".{out.name}.partial")
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        if partial.is_symlink():
            partial.unlink()
        file = os.fdopen(os.open(partial, flags, 0o666), "w+b")
        try:
            _take(file, out)
            # The process that held it may have given it its name, or removed it, just before.
            if partial.exists() and os.path.samestat(os.fstat(file.fileno()), partial.stat()):
                file.truncate(0)
                return partial, file
        except BaseException:
            file.close()
            raise
        file.close()


def _take(file: BinaryIO, out: Path) -> None:
    """Keep other processes from writing to a file.

    Raises:
        UserError: another process is writing to it.
    """
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"{out}: another process is writing it; choose another --out") from None
    except OSError:
        pass  # a file system without locks


@contextmanager
def held(folder: Path, name: Path | str | None = None, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Keep other processes of Bakeoff out of a folder; the system lets go of it when the process ends.

    Args:
        folder: the folder that is written to.
        name: the folder as the user names it; left out: `folder`.
        waiting: a function that is called where another process holds the folder, after which this one waits; left
            out: an error is raised instead.

    Raises:
        UserError: another process holds the folder.
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
    """Make an empty folder and hold it; files that a killed process left there are removed.

    Args:
        folder: a temporary folder beside `name`.
        name: the path that the folder will have in the end.

    Raises:
        UserError: another process holds the folder, or it is a link.
    """
    own_folder(folder)
    if folder.exists():
        with held(folder, name):
            shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with held(folder, name):
        yield


def is_held(folder: Path) -> bool | None:
    """Whether a process holds a folder; None: this system does not tell.

    The look must not get in the way of a process that is about to hold the folder: where the system lists its locks,
    the lock is tried only if it is listed.
    """
    if fcntl is None:
        return None
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii")
        if f":{folder.stat().st_ino} " not in locks:
            return False
    except (FileNotFoundError, PermissionError):
        if not folder.is_dir():
            return False
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False
