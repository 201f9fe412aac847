"""Tensors in files: safetensors, with errors that a user can act on."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bakeoff.durable import sync
from bakeoff.errors import UserError


class Damaged(UserError):
    """A file that is not what was written."""


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors from any device, down to the disk.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        raise UserError(f"{path}: cannot be written: {error}; is the disk full?") from None
    sync(path)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors to the CPU.

    Raises:
        UserError: the file cannot be read.
        Damaged: it was read, and is not whole.
    """
    try:
        return load_file(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except SafetensorError as error:
        raise Damaged(f"{path}: damaged: {error}") from None
