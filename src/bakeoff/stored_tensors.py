"""Tensors of a file, or of files in which several processes have written their parts of them, read one at a time."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.digests import digest
from bakeoff.errors import UserError
from bakeoff.tensor_headers import RESTORE, headers

UNREADABLE = (SafetensorError, KeyError, ValueError, RuntimeError, AttributeError, TypeError)
"""Errors of the library for damaged files, and for types of numbers that torch has not."""

PARTS = "shard-*.safetensors"
"""The names that torch.distributed.checkpoint gives the files of processes, each with parts of all tensors."""

OFFSETS_OF_ALL, OFFSETS = "DCP_SHARDING_INFO", "saved_offsets"
"""The keys, in a file's metadata and in its entry for a tensor, of the part's first index along each dimension."""


class _Chunk(NamedTuple):
    """A part of a tensor in a file."""

    file: Path
    key: str
    """The name of the tensor in the file."""
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of a file NAME.safetensors by their names, each read when it is asked for.

    Where there is no such file, they are put together from the files of several processes beside it, which hold the
    parts of tensor T as NAME.T.

    Args:
        path: the file.
        verified: whether the files were compared with their checksums already.

    Raises:
        UserError: a file cannot be read.
        Damaged: a file is not what was written, or parts do not make up whole tensors.
    """

    def __init__(self, path: Path, verified: bool = False) -> None:
        self.path = path
        files = parts_of(path) or [path]
        self._chunks: dict[str, list[_Chunk]] = {}
        for file in files:
            for key, shape, offsets in _entries(file, in_parts=file != path):
                name = key if file == path else key.removeprefix(f"{path.stem}.")
                if file == path or name != key:
                    self._chunks.setdefault(name, []).append(_Chunk(file, key, offsets, shape))
        self._shapes: dict[str, tuple[int, ...]] = {}
        for name, chunks in self._chunks.items():
            whole = _joined(chunks)
            if whole is None:
                raise Damaged(f"{path}: damaged: a part of {name} is missing", RESTORE)
            self._shapes[name] = whole
        if not verified:
            for file in files:
                checksums.verify(file)
        self._opened: dict[Path, Any] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._chunks)

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, name: str) -> Tensor:
        shape = self.shape(name)
        return self.region(name, [0] * len(shape), shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a whole tensor.

        Raises:
            KeyError: there is none of this name.
        """
        return self._shapes[name]

    def region(self, name: str, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """A part of a tensor, on the CPU.

        Args:
            name: the tensor.
            offsets: the first index along each dimension.
            sizes: the number of indices along each dimension.

        Raises:
            KeyError: there is no tensor of this name.
            Damaged: a file is not what was written, or lacks a piece of the part.
        """
        made, filled = None, 0
        for chunk in self._chunks[name]:
            spans = [
                (max(mine, theirs), min(mine + size, theirs + length))
                for mine, size, theirs, length in zip(offsets, sizes, chunk.offsets, chunk.sizes, strict=True)
            ]
            if any(start >= end for start, end in spans):
                continue
            there = tuple(
                slice(start - first, end - first) for (start, end), first in zip(spans, chunk.offsets, strict=True)
            )
            piece = self._piece(chunk, there)
            if list(piece.shape) == list(sizes):
                return piece
            if made is None:
                made = torch.empty(tuple(sizes), dtype=piece.dtype)
            made[
                tuple(slice(start - first, end - first) for (start, end), first in zip(spans, offsets, strict=True))
            ] = piece
            filled += piece.numel()
        if made is None and 0 in sizes:
            return self._piece(self._chunks[name][0], ()).new_empty(tuple(sizes))
        if made is None or filled != made.numel():
            raise Damaged(f"{self.path}: damaged: a part of {name} is missing", RESTORE)
        return made

    def _piece(self, chunk: _Chunk, there: tuple[slice, ...]) -> Tensor:
        try:
            if chunk.file not in self._opened:
                self._opened[chunk.file] = safe_open(chunk.file, framework="pt")
            opened = self._opened[chunk.file]
            piece: Tensor = opened.get_slice(chunk.key)[there] if there else opened.get_tensor(chunk.key)
        except OSError as error:
            raise UserError(f"{chunk.file}: cannot be read: {error.strerror or error}") from None
        except UNREADABLE as error:
            raise Damaged(f"{chunk.file}: damaged: {error}", RESTORE) from None
        return piece


def _joined(chunks: Sequence[_Chunk]) -> tuple[int, ...] | None:
    """The shape of the tensor that chunks make up; None: they have not as many numbers."""
    if len({len(each.sizes) for each in chunks}) > 1:
        return None
    ends = ([first + size for first, size in zip(each.offsets, each.sizes, strict=True)] for each in chunks)
    shape = tuple(map(max, zip(*ends, strict=True)))
    return shape if math.prod(shape) == sum(math.prod(each.sizes) for each in chunks) else None


def parts_of(path: Path) -> list[Path]:
    """The files with the parts of a file's tensors, which stand in its place; none where there is the file itself."""
    return [] if path.exists() else sorted(path.parent.glob(PARTS))


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, or of the digests of the files with its parts, in hexadecimal digits.

    Raises:
        OSError: there is neither, or a file cannot be read.
    """
    parts = parts_of(path)
    return hashlib.sha256("".join(map(digest, parts)).encode()).hexdigest() if parts else digest(path)


def _entries(file: Path, in_parts: bool) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The name, the shape and the offsets of each tensor of a file."""
    shapes, metadata = headers(file)
    try:
        offsets = json.loads(metadata[OFFSETS_OF_ALL]) if in_parts else {}
        for name, shape in shapes.items():
            first = tuple(map(int, offsets[name][OFFSETS])) if in_parts else (0,) * len(shape)
            if len(first) != len(shape) or min(first, default=0) < 0:
                raise ValueError
            yield name, shape, first
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise Damaged(f"{file}: damaged: it does not say which parts of the tensors it has", RESTORE) from None
