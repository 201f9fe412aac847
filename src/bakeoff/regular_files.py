"""Opening files that may come from somebody else: regular files alone, and no larger than a bound.

An archive may hold links to devices, whose bytes never end, and named pipes, which block whoever opens them.
"""

import errno
import io
import os
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


def require_regular(path: Path, most: int | None = None) -> None:
    """Refuse what is no regular file or larger than a bound, before a library opens it by its name.

    Args:
        path: the file; a link to a regular file is one.
        most: the largest number of bytes; None: any.

    Raises:
        OSError: the path is no regular file, larger than the bound, or cannot be looked at.
    """
    _require(os.stat(path), path, most)


def open_regular(path: Path, most: int | None = None) -> io.BufferedReader:
    """Open a regular file for reading in bytes; arguments as for `require_regular`.

    Raises:
        OSError: the path is no regular file, larger than the bound, or cannot be read.
    """
    require_regular(path, most)  # before it is opened, which a device may notice
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 it is the caller's
    try:
        _require(os.fstat(file.fileno()), path, most)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        OSError: the path is no regular file, larger than the bound, or cannot be read.
    """
    with open_regular(path, most) as file:
        parts = [file.read(os.fstat(file.fileno()).st_size + 1)]
        length = len(parts[0])
        while part := file.read(1 << 20):  # it grows, or is one of the system's, which say that they have no bytes
            parts.append(part)
            length += len(part)
            if length > most:
                raise _too_large(path, length, most)
    return b"".join(parts)


def _without_waiting(name: str, flags: int) -> int:
    """Open a path that may have become a pipe, without waiting for its other end."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _require(status: os.stat_result, path: Path, most: int | None) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"{kind}, where a file is wanted", str(path))
    if most is not None and status.st_size > most:
        raise _too_large(path, status.st_size, most)


def _too_large(path: Path, size: int, most: int) -> OSError:
    return OSError(errno.EFBIG, f"{size:,} bytes, where such a file has at most {most:,}", str(path))
