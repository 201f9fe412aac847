"""Tensors in files: safetensors, with errors that a user can act on."""

import os
import re
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.durable import sync
from bakeoff.errors import UserError

RESTORE = "restore the file from a copy, or make it again"


def save_tensors(tensors: dict[str, Tensor], path: Path, about: dict[str, str] | None = None) -> None:
    """Write tensors from any device and wait until they are on the disk; `about` is the file's metadata.

    Raises:
        OSError: the file cannot be written.
    """
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, about)
    except SafetensorError as error:
        if (number := re.search(r"os error (\d+)", str(error))) is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from None
    sync(path)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors to the CPU.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file was read, but is not what was written.
    """
    checksums.verify(path)
    try:
        return load_file(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise Damaged(f"{path}: damaged: {error}", RESTORE) from None


def fill(module: nn.Module, path: Path) -> None:
    """Put a file's tensors, all of them, into a module.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file is not what was written, or its tensors are not the module's.
    """
    tensors, own = load_tensors(path), module.state_dict()
    for name in [*own, *tensors]:
        there, here = (None if name not in each else tuple(each[name].shape) for each in (tensors, own))
        if there != here:
            raise Damaged(f"{path}: {name} is {there or 'absent'} there, and {here or 'absent'} by the recipe", RESTORE)
    module.load_state_dict(tensors)
