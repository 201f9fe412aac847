"""Reading a run's metrics.jsonl, which may be complete, grow, or be cut back by a resumed training."""

from pathlib import Path
from typing import Any

from bakeoff.checksums import Damaged
from bakeoff.runs.records import read_metrics

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """The complete lines of a metrics.jsonl; empty if there is no file.

    Raises:
        UserError: the file is damaged, or a line is no JSON object or lacks a key; the message has the line's number.
    """
    try:
        return read_metrics(path, growing=True)
    except Damaged:  # or the training has finished between the look at the file and the look at its checksum
        return read_metrics(path, growing=True)


class Follower:
    """A reader of a growing metrics.jsonl, which gives the new lines at each look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[Line] = []
        self.stamp: tuple[int, ...] = ()

    def look(self) -> tuple[list[Line], bool]:
        """The lines that are new since the last look, and whether earlier lines have been removed or changed.

        Raises:
            UserError: the file is damaged, as for `read_lines`.
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
