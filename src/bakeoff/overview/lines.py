"""metrics.jsonl of a run, whether it grows, is cut back by a training that is resumed, or is whole."""

from pathlib import Path
from typing import Any

from bakeoff.errors import UserError
from bakeoff.json_files import parse_json

Line = dict[str, Any]


def read_lines(path: Path) -> list[Line]:
    """The whole lines of a metrics.jsonl, each with kind and step; none where there is no file.

    Raises:
        UserError: one is no JSON object, or lacks a key; the message has its number.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    found = []
    # A training may be in the middle of the last one.
    for number, text in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        line = parse_json(text, f"{path}:{number}")
        if not isinstance(line.get("kind"), str) or not isinstance(line.get("step"), int):
            raise UserError(f"{path}:{number}: not what Bakeoff writes there: no kind or no step")
        found.append(line)
    return found


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
