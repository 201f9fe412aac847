"""Tensors in files: safetensors, with errors that a user can act on."""

import os
import re
import stat
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from bakeoff.checksums import Damaged
from bakeoff.durable import sync
from bakeoff.errors import UserError
from bakeoff.stored_tensors import StoredTensors
from bakeoff.tensor_headers import RESTORE


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
    """The shapes of a file's tensors by name, from its header alone, or of those whose parts stand in its place.

    Raises:
        UserError: the file cannot be read.
        Damaged: it is no safetensors file, its header and its size contradict each other, or a tensor has more
            dimensions than torch's may have.
    """
    stored = StoredTensors(path, verified=True)
    return {name: stored.shape(name) for name in stored}


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors to the CPU; where processes have written their parts of them, these are put together.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file was read, but is not what was written.
    """
    return dict(StoredTensors(path))


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
    stored = StoredTensors(path)
    with torch.no_grad():
        for name, tensor in module.state_dict().items():  # one by one, which needs no memory for all twice
            tensor.copy_(stored[name])


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
