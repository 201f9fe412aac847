"""The SHA-256 of files: a large one is read once, and again when its size or times say that it may have changed."""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from bakeoff.display.terminal import tell
from bakeoff.regular_files import open_regular
from bakeoff.user_cache import cache, cached

REMEMBERED_FROM = 1 << 20
"""Bytes. A smaller file is read every time, which takes less than a millisecond."""
SETTLED = 2.0
"""Seconds. A file whose last change is more recent may be changed again without its time showing it."""
ANNOUNCED_FROM = 4 << 30
"""Bytes. Reading a larger file takes seconds, so that a line is shown before."""

_here: dict[tuple[str, int, int, int], tuple[str, list[str]]] = {}  # of this process, for where nothing can be kept


def digest(path: Path, anew: bool = False) -> str:
    """The file's SHA-256 in hexadecimal digits.

    Args:
        path: the file.
        anew: read the file even where its digest is remembered.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    key = _key(path)
    if not anew and (kept := _recall(key)) is not None:
        return kept[0]
    if key[1] >= ANNOUNCED_FROM and not anew:
        tell(f"{path}: reading {key[1] / 1e9:,.0f} GB once to verify them")
    with open_regular(path) as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    if _key(path) == key:
        _remember(key, checksum, [])
    return checksum


def checked_once(path: Path, name: str, check: Callable[[], None]) -> None:
    """Run a check of a file's content, unless it passed before and the file has not changed.

    Args:
        path: the file.
        name: the check's name.
        check: a function that raises an error where the content is wrong.
    """
    key = _key(path)
    kept = _recall(key)
    if kept is None or name not in kept[1]:
        check()
        if kept is not None:
            _remember(key, kept[0], [*kept[1], name])


def _key(path: Path) -> tuple[str, int, int, int]:
    """A key for the present content of a file: its path, its size and its times of change."""
    status = path.stat()
    return os.path.abspath(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _store(path: str) -> str:
    """The name under which the user's cache remembers the files of one folder."""
    return hashlib.sha256(os.path.dirname(path).encode()).hexdigest()[:32]


def _recall(key: tuple[str, int, int, int]) -> tuple[str, list[str]] | None:
    """The digest of a file as it is, and the checks that it passed."""
    if key[1] < REMEMBERED_FROM:
        return None
    if key not in _here:
        with contextlib.suppress(ValueError, TypeError):
            entry = cached("digests", _store(key[0])).get(os.path.basename(key[0]), ())
            size, modified, changed, checksum, checks = entry
            if (size, modified, changed) == key[1:] and isinstance(checksum, str) and isinstance(checks, list):
                _here[key] = checksum, checks
    return _here.get(key)


def _remember(key: tuple[str, int, int, int], checksum: str, checks: list[str]) -> None:
    """Keep a digest in the user's cache; two processes at a time may lose one of two digests."""
    if key[1] < REMEMBERED_FROM or time.time() - max(key[2:]) / 1e9 < SETTLED:
        return
    _here[key] = checksum, checks
    store = _store(key[0])
    cache("digests", store, {**cached("digests", store), os.path.basename(key[0]): [*key[1:], checksum, checks]})
