"""Windows over texts longer than a row: each token is scored once, with as much context as fits."""

from collections.abc import Iterator
from typing import NamedTuple


class Window(NamedTuple):
    """A stretch of a text that is read at once, and the part of it that is scored; positions count from 0."""

    begin: int
    """The first position that is read."""
    end: int
    """The end of the read positions, exclusive."""
    scored: int
    """The first position that is scored."""
    until: int
    """The end of the scored positions, exclusive."""


def windows_behind(length: int, room: int, first: int = 0, stride: int | None = None) -> Iterator[Window]:
    """Windows for causal models; in each but the first, scored tokens have at least `room - stride` tokens before them.

    Args:
        length: tokens of the text.
        room: tokens of a row.
        first: the first position to be scored.
        stride: the largest number of tokens that a window after the first one adds, at most `room`; None: half a row.
    """
    stride = stride or max(1, room // 2)
    while first < length:
        until = min(length, max(room, first + stride))
        yield Window(max(0, until - room), until, first, until)
        first = until


def windows_around(length: int, room: int, stride: int | None = None) -> Iterator[Window]:
    """Windows for bidirectional models; scored tokens have (room - stride) / 2 tokens or the text's end on each side.

    Args:
        length: tokens of the text.
        room: tokens of a row.
        stride: tokens from one window to the next, at most `room`; None: half a row.
    """
    stride = stride or max(1, room // 2)
    margin = (room - stride) // 2
    begin, scored = 0, 0
    while scored < length:
        begin = min(begin, max(0, length - room))
        end = min(length, begin + room)
        until = length if end == length else begin + margin + stride
        yield Window(begin, end, scored, until)
        begin, scored = begin + stride, until
