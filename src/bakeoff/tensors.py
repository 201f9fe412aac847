"""Tensors in files: safetensors, with errors that a user can act on."""

import json
import os
import re
import stat
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.durable import sync
from bakeoff.errors import UserError
from bakeoff.regular_files import open_regular

RESTORE = "restore the file from a copy, or make it again"
UNREADABLE = (SafetensorError, KeyError, ValueError, RuntimeError, AttributeError, TypeError)
"""Errors of the library for damaged files, and for types of numbers that torch has not."""
MOST_OF_HEADER = 100_000_000
"""Largest number of bytes of a header, as the safetensors library has it."""
MOST_DIMENSIONS = 64
"""Largest number of dimensions of a tensor, as torch has it."""


def save_tensors(tensors: dict[str, Tensor], path: Path, about: dict[str, str] | None = None) -> None:
    """Write tensors from any device and wait until they are on the disk; `about` is the file's metadata.

    Raises:
        OSError: the file cannot be written.
    """
    path.unlink(missing_ok=True)  # what a killed process has left may be readable to its owner alone
    path.touch()  # safetensors makes such a file, where others follow the umask
    mode = path.stat().st_mode
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, about)
    except SafetensorError as error:
        if (number := re.search(r"os error (\d+)", str(error))) is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from None
    path.chmod(stat.S_IMODE(mode))
    sync(path)


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a file's tensors by name, from its header alone.

    Raises:
        UserError: the file cannot be read.
        Damaged: it is no safetensors file, its header and its size contradict each other, or a tensor has more
            dimensions than torch's may have.
    """
    checksums.require_present(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            header = file.read(min(length, MOST_OF_HEADER))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(header) < length:
        raise Damaged(f"{path}: damaged: its header ends too early", RESTORE)
    try:
        entries = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
        end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
        shape_of = {name: tuple(map(int, entry["shape"])) for name, entry in entries.items()}
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError):
        raise Damaged(f"{path}: damaged: its header is not that of a safetensors file", RESTORE) from None
    if 8 + length + end != size:
        raise Damaged(f"{path}: damaged: {size:,} bytes, of which its header knows {8 + length + end:,}", RESTORE)
    for name, shape in shape_of.items():
        if len(shape) > MOST_DIMENSIONS:
            raise Damaged(
                f"{path}: damaged: {name} has {len(shape):,} dimensions; {MOST_DIMENSIONS} can be read", RESTORE
            )
    return shape_of


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors to the CPU.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file was read, but is not what was written.
    """
    shapes(path)
    checksums.verify(path)
    try:
        return load_file(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UNREADABLE as error:
        raise Damaged(f"{path}: damaged: {error}", RESTORE) from None


def rows_of(path: Path, name: str) -> int | None:
    """The first dimension of a tensor, by its file's header; None: no such tensor can be read."""
    try:
        return shapes(path)[name][0]
    except (UserError, KeyError, IndexError):
        return None


def fill(module: nn.Module, path: Path) -> None:
    """Put a file's tensors, all of them, into a module.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file is not what was written, or its tensors are not the module's.
    """
    require_shapes(path, module)
    module.load_state_dict(load_tensors(path))


def require_shapes(path: Path, module: nn.Module) -> None:
    """Refuse a file whose tensors are not a module's by name and shape; only the file's header is read.

    Raises:
        UserError: the file cannot be read.
        Damaged: it has other tensors, or is damaged.
    """
    stored = shapes(path)
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in [*expected, *stored]:
        there, here = stored.get(name), expected.get(name)
        if there != here:
            raise Damaged(f"{path}: {name} is {there or 'absent'} there, and {here or 'absent'} by the recipe", RESTORE)
