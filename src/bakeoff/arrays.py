"""Arrays as files that `numpy.load(path, mmap_mode="r")` opens, written part by part; N rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bakeoff.durable import appearing


def write_array(out: Path, parts: Iterable[NDArray[Any]], shape: tuple[int, ...], kind: str) -> int:
    """Write the rows of a .npy file part by part, so that memory does not grow with N, and return N.

    The file appears when it is complete.

    Args:
        out: the file.
        parts: arrays of some rows each.
        shape: the shape of a row; () where a row is one number.
        kind: numpy's type of the numbers with their byte order, such as `<f4`.

    Raises:
        UserError: the file cannot be made.
    """
    count = 0
    with appearing(out) as file:
        begin = _write_header(file, (0, *shape), kind)
        for part in parts:
            file.write(np.ascontiguousarray(part, kind).data)
            count += len(part)
        file.seek(0)
        # The header has room for its first number to grow.
        assert _write_header(file, (count, *shape), kind) == begin
    return count


def _write_header(file: BinaryIO, shape: tuple[int, ...], kind: str) -> int:
    """Write the header of a .npy file and return its number of bytes."""
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.tell()
