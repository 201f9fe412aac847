"""The metrics.jsonl of an unfinished run: written line by line, and reset to a checkpoint."""

import hashlib
import json
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.durable import sync, write_atomically
from bakeoff.json_files import MOST_OF_LINES
from bakeoff.regular_files import read_regular
from bakeoff.runs.records import parse_metrics

METRICS = "metrics.jsonl"


class MetricsFile:
    """The metrics.jsonl of a run; its lines up to a checkpoint belong to that checkpoint."""

    def __init__(self, folder: Path, checkpoints: Path) -> None:
        """The file in a run's directory `folder`, with the run's `checkpoints` folder."""
        self.folder, self.path, self.checkpoints = folder, folder / METRICS, checkpoints

    def append(self, line: dict[str, Any]) -> None:
        """Append a line; it is not yet flushed to the disk, see `sync`."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def sync(self) -> None:
        """Flush the lines to the disk."""
        if self.path.is_file():
            sync(self.path)

    def clear(self) -> None:
        """Remove all lines, when a training without a checkpoint starts again."""
        if self.path.is_file():
            checksums.forget(self.folder, [METRICS])
            write_atomically(self.path, "")

    def mark(self) -> dict[str, Any]:
        """Length and SHA-256 of the file, for a checkpoint, see `FileExtent`."""
        content = read_regular(self.path, MOST_OF_LINES) if self.path.exists() else b""
        return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def restore(self, mark: dict[str, Any] | None, step: int) -> None:
        """Remove the lines after a checkpoint, which a resumed training writes again.

        Args:
            mark: the result of `mark` for the checkpoint; None: the checkpoint is from before there were marks.
            step: the checkpoint's step.

        Raises:
            Damaged: the lines of the checkpoint are not those that were written.
        """
        if mark is None:
            content = read_regular(self.path, MOST_OF_LINES) if self.path.exists() else b""
            lines = [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
            steps = [line["step"] for line in parse_metrics(b"".join(lines), str(self.path))]
            kept = b"".join(line for line, line_step in zip(lines, steps, strict=True) if line_step <= step)
        else:
            kept = self.marked(mark, step)
        checksums.forget(self.folder, [METRICS])
        write_atomically(self.path, kept.decode())

    def marked(self, mark: dict[str, Any], step: int) -> bytes:
        """The lines that belong to a checkpoint; arguments as for `restore`.

        Raises:
            Damaged: the lines are not those that were written.
        """
        content = read_regular(self.path, MOST_OF_LINES)[: mark["bytes"]] if self.path.exists() else b""
        if hashlib.sha256(content).hexdigest() != mark["sha256"]:
            raise Damaged(
                f"{self.path}: damaged: the lines up to step {step} are not what was written",
                f"restore it from a copy, or delete {self.checkpoints / f'step-{step:08d}'} to go on from the "
                "checkpoint before",
            )
        return content
