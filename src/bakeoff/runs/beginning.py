"""The beginning of a run's directory; what a killed process has left of one is made anew."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import checksums
from bakeoff.durable import held, holds_something, own_folder, removed_after_an_error, write_atomically
from bakeoff.errors import UserError
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.metrics_file import METRICS
from bakeoff.unfinished import ELSEWHERE, taken, what_stands

if TYPE_CHECKING:
    from bakeoff.runs.run import Run

MARK = ".bakeoff-begun"
"""The file that stands in a directory while its first files are written."""


@contextmanager
def alone_in(path: Path) -> Iterator[None]:
    """Make a directory, unless it is there, and keep other processes out of it.

    Raises:
        UserError: it cannot be made, or is a file, or another process writes there.
    """
    _make(path)
    with held(path):
        yield


@contextmanager
def removed_before_a_step(run: "Run") -> Iterator[None]:
    """Remove a run's directory after an error before the first logged step and checkpoint, since it is of no use."""

    def has_steps() -> bool:
        lines = run.metrics() if (run.home / METRICS).is_file() else []
        return run.finished or bool(list_checkpoints(run.checkpoints)) or any(line["step"] > 0 for line in lines)

    with removed_after_an_error(run.path, unless=has_steps):
        yield


def begin(path: Path, texts: Mapping[str, str]) -> None:
    """Write the first files of a run, the last of which makes the directory a run.

    Args:
        path: the directory, empty or not yet there, or with what a killed process has left of these files.
        texts: the files' contents by their names, in order.

    Raises:
        UserError: the path holds something, or the directory cannot be made.
    """
    if holds_something(path) and not _is_left(path, texts):
        raise _taken(path)
    _make(path)
    with removed_after_an_error(path):
        (path / MARK).touch()
        for name in _names(texts) - {MARK}:
            (path / name).unlink(missing_ok=True)
        for name, text in texts.items():
            write_atomically(path / name, text)
    complete(path, list(texts))


def require_no_run(path: Path) -> None:
    """Refuse a directory that is a run, which `begin` would refuse later.

    Raises:
        UserError: it is one.
    """
    if (path / "recipe.yaml").exists():
        raise _taken(path)


def complete(path: Path, names: list[str]) -> None:
    """Do what a process that was killed in `begin` may have left to do after the last file."""
    if (path / MARK).is_file():
        checksums.record(path, names)
        (path / MARK).unlink()


def _make(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise _taken(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be made: {error.strerror}") from None


def _taken(path: Path) -> UserError:
    if (path / "checkpoints").is_dir() and not (path / "summary.json").exists():
        return taken(path, "an unfinished run", f"--resume goes on with it, or {ELSEWHERE}")
    return taken(path, what_stands(path), f"{ELSEWHERE}, or --resume an unfinished run")


def _names(texts: Mapping[str, str]) -> set[str]:
    """The names of all files that `begin` makes."""
    names = {*texts, checksums.NAME}
    return {MARK, *names, *(f".{name}.partial" for name in names)}


def _is_left(path: Path, texts: Mapping[str, str]) -> bool:
    """Whether a directory holds nothing but what a killed `begin` has left, before its last file."""
    if not path.is_dir():
        return False
    names = {each.name for each in path.iterdir()}
    if MARK not in names or not names <= _names(texts) or [*texts][-1] in names:
        return False  # and is not searched for links: it may be any folder of any size
    own_folder(path.resolve())
    return True
