"""metrics.jsonl of a run, whether it grows, is cut back by a training that is resumed, or is whole."""

from pathlib import Path
from typing import Any

from bakeoff.checksums import Damaged
from bakeoff.runs.records import read_metrics

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """The whole lines of a metrics.jsonl; none where there is no file.

    Raises:
        UserError: it is damaged, or a line is no JSON object or lacks a key; the message has its number.
    """
    try:
        return read_metrics(path, growing=True)
    except Damaged:  # or the training has finished between the look at the file and the look at its checksum
        return read_metrics(path, growing=True)


class Follower:
    """The new lines of a file at each look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[Line] = []
        self.stamp: tuple[int, ...] = ()

    def look(self) -> tuple[list[Line], bool]:
        """The lines that have come since the last look, and whether lines that were there have gone.

        Raises:
            UserError: as of `read_lines`.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            stamp: tuple[int, ...] = ()
        else:
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp == self.stamp:
            return [], False
        lines = read_lines(self.path)
        self.stamp = stamp
        same = 0
        for old, new in zip(self.seen, lines, strict=False):
            if old != new:
                break
            same += 1
        back = same < len(self.seen)
        self.seen = lines
        return lines[same:], back
