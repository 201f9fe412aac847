"""Checkpoints of a run on the disk: their names, steps and order."""

from pathlib import Path


def list_checkpoints(folder: Path) -> list[Path]:
    """All complete checkpoints in a folder, the oldest first."""
    paths = folder.glob("step-*") if folder.is_dir() else []
    return sorted(path for path in paths if path.name.removeprefix("step-").isdecimal())


def run_folder(path: Path) -> Path:
    """The directory of the run whose checkpoint a path names, RUN/checkpoints/step-N; any other path itself."""
    path = path if path.name else path.resolve()
    if not (path / "state.json").is_file() or path.absolute().parent.name != "checkpoints":
        return path
    return path.parents[1] if len(path.parents) > 1 else path.absolute().parents[1]


def checkpoint_step(path: Path) -> int:
    """The number of optimizer steps before a checkpoint."""
    return int(path.name.removeprefix("step-"))
