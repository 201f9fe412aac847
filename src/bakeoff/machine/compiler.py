"""This machine's C compiler, and libraries that it has made, kept in the user's cache."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bakeoff.user_cache import user_cache

COMPILERS = ("cc", "gcc", "clang")
"""Names of compilers, after the one that the variable CC names."""

FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math")
"""Flags that gcc and clang have in common. Sums keep their order, so that results do not depend on the compiler's taste
in vectors; products and sums may become one instruction."""

FLAGS_OF_MACHINES = {
    "x86_64": ("-march=native", "-mprefer-vector-width=512"),
    "amd64": ("-march=native", "-mprefer-vector-width=512"),
    "aarch64": ("-mcpu=native",),
    "arm64": ("-mcpu=native",),
}
"""Flags for all instructions of this processor, by the name of its kind; others get those that all of a kind have."""

PATIENCE = 120.0
"""Seconds that a compiler may take."""


class Compiled(NamedTuple):
    """A library, and where it comes from."""

    library: ctypes.CDLL | None
    """The library; None: there is none."""
    origin: str
    """The compiler and its version, or the reason why there is no library."""


class _Refused(Exception):
    """A reason why there is no library."""


def compiled(sources: Sequence[Path]) -> Compiled:
    """A library of C files, made by this machine's compiler, or by an earlier process.

    It is kept under a name made of all that decides its content: the sources and the headers beside them, the flags,
    the compiler and the processor. Several processes may make it at the same time; each sees a whole one. A cache that
    another user could have written to is not loaded from; where it cannot be used, the library is made for this process
    alone.
    """
    if sys.platform not in ("linux", "darwin"):
        return Compiled(None, f"no kernels for {sys.platform}")
    try:
        command, version = _compiler()
        name = f"{_digest(sources, command, version)}.so"
        return Compiled(_kept(sources, command, name) or _for_this_process(sources, command, name), version)
    except _Refused as refused:
        return Compiled(None, str(refused))


def _compiler() -> tuple[list[str], str]:
    """The command of the compiler, flags included, and the first line of its version."""
    try:
        asked = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise _Refused(f"CC is no command: {error}") from None
    for command in [asked] if asked else [[name] for name in COMPILERS]:
        if shutil.which(command[0]) is None:
            continue
        try:
            answer = _output([*command, "--version"])
        except _Refused:
            continue
        flags = [*FLAGS, *FLAGS_OF_MACHINES.get(platform.machine().lower(), ())]
        return [*command, *flags], answer.partition("\n")[0].strip()
    raise _Refused(f"no C compiler ({' '.join(asked) or ', '.join(COMPILERS)})")


def _output(command: Sequence[str]) -> str:
    """What a command prints."""
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _Refused(f"{command[0]} failed: {error}") from None
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if "error" in line] or process.stderr.splitlines()
        raise _Refused(f"{command[0]} failed: {lines[0] if lines else f'exit status {process.returncode}'}")
    return process.stdout


def _digest(sources: Sequence[Path], command: Sequence[str], version: str) -> str:
    """A name for the library that a command makes of the sources."""
    files = sorted({*sources, *(header for source in sources for header in source.parent.glob("*.h"))})
    parts = [*command, shutil.which(command[0]) or "", version, platform.machine(), _instructions()]
    parts += [file.name + "\0" + file.read_text(encoding="utf-8") for file in files]
    return hashlib.sha256("\0\0".join(parts).encode()).hexdigest()[:32]


def _instructions() -> str:
    """The instructions of the processor, as the system lists them; empty: it does not."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        wanted = ("flags", "Features", "model name", "CPU part")
        return "".join(sorted({line for line in file if line.startswith(wanted)}))
    return platform.processor()


def _kept(sources: Sequence[Path], command: Sequence[str], name: str) -> ctypes.CDLL | None:
    """The library in the user's cache, made first where it is missing or damaged; None: the cache cannot be used."""
    try:
        folder = user_cache("kernels")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder, stat.S_ISDIR):
            return None
        if _private(folder / name, stat.S_ISREG):
            with suppress(OSError):
                return ctypes.CDLL(str(folder / name))
        with tempfile.TemporaryDirectory(prefix=".", dir=folder) as work:
            made = _made(sources, command, Path(work) / name)
            os.replace(made, folder / name)
        return ctypes.CDLL(str(folder / name))
    except (OSError, RuntimeError, _Refused):  # also a full disk, of which the compiler says so
        return None


def _private(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Whether a path is of a kind, no link, and nobody but this user can have written to it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return is_kind(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _for_this_process(sources: Sequence[Path], command: Sequence[str], name: str) -> ctypes.CDLL:
    """A library in a folder of its own, which is removed once the library is loaded."""
    try:
        with tempfile.TemporaryDirectory() as work:
            return ctypes.CDLL(str(_made(sources, command, Path(work) / name)))
    except OSError as error:
        raise _Refused(f"the kernels cannot be loaded: {error}") from None


def _made(sources: Sequence[Path], command: Sequence[str], path: Path) -> Path:
    """A new library at a path, readable by this user alone."""
    _output([*command, "-o", str(path), *map(str, sources), "-lm"])
    path.chmod(0o700)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return path
