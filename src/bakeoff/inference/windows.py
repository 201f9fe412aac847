"""Windows of a text that is longer than a row: every token is scored once, with as much of the text around as fits."""

from collections.abc import Iterator
from typing import NamedTuple


class Window(NamedTuple):
    """A part of a text that is read at once, and the part of that which is scored; places count from 0."""

    begin: int
    """The first place that is read."""
    end: int
    """The place behind the last one that is read."""
    scored: int
    """The first place that is scored."""
    until: int
    """The place behind the last one that is scored."""


def windows_behind(length: int, room: int, first: int = 0, stride: int | None = None) -> Iterator[Window]:
    """Windows for models that look back: behind the first window each place has at least room - stride before it.

    Args:
        length: places of the text.
        room: places of a row.
        first: the first place that is to be scored.
        stride: the most places that a window behind the first one adds, at most `room`; None: half a row.
    """
    stride = stride or max(1, room // 2)
    while first < length:
        until = min(length, max(room, first + stride))
        yield Window(max(0, until - room), until, first, until)
        first = until


def windows_around(length: int, room: int, stride: int | None = None) -> Iterator[Window]:
    """Windows for models that look to both sides: each place has (room - stride) / 2 on either side, or the text's end.

    Args:
        length: places of the text.
        room: places of a row.
        stride: places from one window to the next, at most `room`; None: half a row.
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
