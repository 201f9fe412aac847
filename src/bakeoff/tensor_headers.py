"""The headers of .safetensors files, read without torch: which tensors a file has, and whether it is whole."""

import json
import os
from pathlib import Path

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.errors import UserError
from bakeoff.regular_files import open_regular

RESTORE = "restore the file from a copy, or make it again"
MOST_OF_HEADER = 100_000_000
"""Largest number of bytes of a header, as the safetensors library has it."""
MOST_DIMENSIONS = 64
"""Largest number of dimensions of a tensor, as torch has it."""


def headers(path: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """The shapes of a file's tensors by name, and the file's metadata, from its header alone.

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
        entries = json.loads(header)
        metadata = entries.pop("__metadata__", {})
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
    return shape_of, metadata
