"""A checkpoint of a run by its step, or by the point at which it was kept."""

from collections.abc import Iterator
from pathlib import Path

from bakeoff.errors import UserError
from bakeoff.optimization.save_points import SavePoints
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.runs.run import Run

_SHOWN = 8
"""The most checkpoints that an error names."""


def find_checkpoint(run: str | Path, which: str | int) -> Path:
    """The path of a checkpoint, which every verb takes in the place of a run.

    Args:
        run: the run, finished or not.
        which: the number of its step; or the point at which it was kept (`words=1M`); or the name of its folder.

    Raises:
        UserError: there is no such run, or it has no such checkpoint; the message names those that it has.
    """
    opened, which = Run(run), str(which)
    there = list(_checkpoints(opened))
    name = which
    if "=" in which:
        points = SavePoints.parse_texts([which], "--checkpoint").points()
        name = points[0].folder if len(points) == 1 else which
    for path, step in there:
        if name == path.name or (name.isdecimal() and int(name) == step):
            return path
    shown = ", ".join(f"{step:,} ({path.relative_to(opened.home)})" for path, step in there[-_SHOWN:])
    what = f"its checkpoints are those of steps {shown}" if there else "it has no checkpoints"
    if len(there) > _SHOWN:
        what += f" and {len(there) - _SHOWN} before"
    raise UserError(f"{run}: --checkpoint {which}: no such checkpoint; {what}")


def _checkpoints(run: Run) -> Iterator[tuple[Path, int]]:
    """The path and the step of each checkpoint, in the order of steps; those that were kept before those to resume."""
    kept = sorted(run.saved.iterdir()) if run.saved.is_dir() else []
    saved = [Run(path) for path in kept if (path / "summary.json").is_file()]
    checkpoints = [(each.path, each.step()) for each in saved]
    checkpoints += [(path, checkpoint_step(path)) for path in list_checkpoints(run.checkpoints)]
    yield from sorted(checkpoints, key=lambda each: each[1])
