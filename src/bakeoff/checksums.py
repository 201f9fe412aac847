"""Checksums of a folder's files, in a list beside them: a file that is read is compared with the list.

The list has a line `DIGEST  NAME` for each file, as `sha256sum --check` reads it, and at its end a digest of these
lines. A file that is to be changed loses its line before the change and gets a new one after it, so that a process that
is killed in between leaves a file without a checksum. Folders of older versions have no list, and nothing is compared
there.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bakeoff.digests import digest
from bakeoff.durable import LIST, write_atomically
from bakeoff.errors import UserError
from bakeoff.regular_files import read_regular

NAME = LIST
"""The list's name."""
MOST = 1 << 28
"""Largest number of bytes of a file that is read into memory."""
MOST_OF_LIST = 1 << 24
"""Largest number of bytes of a list, which is enough for 150,000 files."""

_LINE = re.compile(r"([0-9a-f]{64})  ([^/\\\x00-\x1f]+)")
_END = "# SHA-256 of the lines above: "


class Damaged(UserError):
    """A file that is not what was written.

    Attributes:
        problem: the file, and what is wrong with it.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem


def listed(folder: Path) -> dict[str, str]:
    """The digests of a folder's files by their names; none where there is no list.

    Raises:
        UserError: the list cannot be read.
        Damaged: the list is not what was written.
    """
    path = folder / NAME
    try:
        text = read_regular(path, MOST_OF_LIST).decode()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        text = ""
    *lines, _ = text.removesuffix("\n").split("\n")
    entries = [_LINE.fullmatch(line) for line in lines]
    if text != _text(lines) or None in entries:
        raise Damaged(
            f"{path}: damaged: these checksums are not what was written",
            f"restore the file from a copy, or delete it to use {folder} without them",
        )
    return {entry[2]: entry[1] for entry in entries if entry is not None}


def verify(path: Path) -> None:
    """Compare a file with the list beside it, if the list names the file.

    Raises:
        UserError: it cannot be read.
        Damaged: it is not what was written.
    """
    expected = listed(path.parent).get(path.name)
    if expected is not None:
        compare(path, expected)


def verify_all(folder: Path) -> None:
    """Compare all files of a folder's list with it.

    Raises:
        UserError: a file cannot be read.
        Damaged: a file is not what was written, or absent.
    """
    for name, expected in listed(folder).items():
        compare(folder / name, expected)


def require_present(path: Path) -> None:
    """Refuse a file that is absent, although the list beside it names the file.

    Raises:
        Damaged: it was written, and is lost.
    """
    if path.name in listed(path.parent) and not os.path.lexists(path):
        raise _missing(path)


def absent(folder: Path) -> list[str]:
    """The names of files that a folder's list has and the folder lacks; none where the list cannot be read."""
    try:
        return [name for name in sorted(listed(folder)) if not os.path.lexists(folder / name)]
    except UserError:
        return []


def compare(path: Path, expected: str, anew: bool = False) -> None:
    """Compare a file with a digest; with `anew` the file is read even where its digest is remembered.

    Raises:
        UserError: it cannot be read.
        Damaged: it is not what was written.
    """
    try:
        present = digest(path, anew)
    except FileNotFoundError:
        raise _missing(path) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if present != expected:
        raise damaged(path)


def read(path: Path, most: int = MOST) -> bytes:
    """The content of a file, compared with the list beside it, if the list names the file.

    Args:
        path: the file.
        most: the largest number of bytes.

    Raises:
        UserError: it cannot be read, is no regular file, or larger than `most`.
        Damaged: it is not what was written.
    """
    try:
        content = read_regular(path, most)
    except FileNotFoundError:
        require_present(path)
        raise UserError(f"{path}: cannot be read: No such file or directory") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    expected = listed(path.parent).get(path.name)
    if expected is not None and hashlib.sha256(content).hexdigest() != expected:
        raise damaged(path)
    return content


def damaged(path: Path) -> Damaged:
    """The error for a file that differs from its digest."""
    return Damaged(f"{path}: damaged: it is not what was written (SHA-256 differs)", _advice(path))


def _missing(path: Path) -> Damaged:
    """The error for a file that is lost."""
    return Damaged(
        f"{path}: missing, though {NAME} beside it lists it",
        f"restore it from a copy, or make {path.parent} again in another place",
    )


def _advice(path: Path) -> str:
    return f"restore it from a copy, or make {path.parent} again (changed on purpose? delete {NAME} beside it)"


def record(folder: Path, names: Iterable[str], texts: Mapping[str, str] | None = None) -> None:
    """Write the present checksums of files into the folder's list, instead of older ones.

    Args:
        folder: the folder of the files.
        names: the files' names.
        texts: contents of files that will be written next, by their names; a kill before this makes them missing.
    """
    entries = listed(folder) | {name: digest(folder / name, anew=True) for name in names}
    entries |= {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (texts or {}).items()}
    write_list(folder, entries)


def forget(folder: Path, names: Iterable[str]) -> None:
    """Take files that are about to be changed out of the folder's list."""
    entries = listed(folder)
    kept = {name: checksum for name, checksum in entries.items() if name not in set(names)}
    if len(kept) < len(entries):
        write_list(folder, kept)


def write(path: Path, text: str) -> None:
    """Replace a text file whole or not at all, and put its checksum into the list."""
    forget(path.parent, [path.name])
    write_atomically(path, text)
    record(path.parent, [path.name])


def write_list(folder: Path, entries: Mapping[str, str]) -> None:
    """Write a folder's list anew, with these digests by file name and no others."""
    write_atomically(folder / NAME, _text([f"{entries[name]}  {name}" for name in sorted(entries)]))


def _text(lines: list[str]) -> str:
    """The list's text; its last line tells whether the others are whole."""
    body = "".join(f"{line}\n" for line in lines)
    return f"{body}{_END}{hashlib.sha256(body.encode()).hexdigest()}\n"
