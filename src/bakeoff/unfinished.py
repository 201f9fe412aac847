"""Folders that get their names when they are whole: an unfinished one stands beside its place until then."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bakeoff.durable import as_new, fresh, held, holds_something, own_folder, remove, sync
from bakeoff.errors import WHERE_RUNS_ARE, Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.signals import are_noted, stop_signals

ELSEWHERE = "choose another --out"
"""Advice where something stands at the place of an output."""


UNFINISHED = ".unfinished"
"""The end of the hidden name of a folder that is made beside its place."""

ASKED = "asked.json"
"""The file with the inputs of a training that gets its name when it is whole, by which --resume recognises it."""


def what_stands(path: Path) -> str:
    """What stands at a place that is taken, in words."""
    return "a run" if (path / "recipe.yaml").exists() else "something else"


def require_free(out: Path, what: str = "something", advice: str = ELSEWHERE) -> None:
    """Refuse the place of an output that is taken.

    Args:
        out: the place.
        what: what is there, if it is taken, for the message.
        advice: the end of the message.

    Raises:
        UserError: `out` is a link, a file or a folder that is not empty.
    """
    if out.is_symlink() or holds_something(out):
        raise taken(out, what, advice)


def taken(out: Path, what: str, advice: str) -> UserError:
    """The error about the place of an output that holds something; see `require_free`."""
    return UserError(f"{out}: holds {what} already; {advice}")


def unfinished_folder(out: Path) -> Path:
    """The folder in which the content of `out` is made, beside it."""
    return out.absolute().with_name(f".{out.absolute().name}{UNFINISHED}")


def finished_folder(folder: Path) -> Path:
    """The place whose content is made in a folder; of a folder that is at its place, the folder itself."""
    name = folder.name
    waiting = name.startswith(".") and name.endswith(UNFINISHED)
    return folder.with_name(name.removeprefix(".").removesuffix(UNFINISHED)) if waiting else folder


SEARCH, TRIALS = "search.json", "trials"
"""The file that marks a directory as a search, whose result is the recipe.yaml beside it; the folder of its trials."""


def search_of(run: Path) -> Path | None:
    """The search that a run is a trial of; None: it is of none."""
    named = run if run.parent.name == TRIALS else run.absolute()
    search = named.parents[1] if named.parent.name == TRIALS else None
    return search if search is not None and (search / SEARCH).is_file() else None


def was_dropped(run: Path) -> bool:
    """Whether an unfinished run is a trial of a search that has ended, and so will not be gone on with."""
    search = search_of(run)
    return search is not None and (search / "results.json").is_file()


FAILURE = "failure.json"
"""The file in the directory of a training of a comparison or a search that diverged, and is not tried again."""


def no_such_run(path: Path, what: str = f"no such run; {WHERE_RUNS_ARE}") -> UserError:
    """The error about a run that is not there, in the words of `what`; or that was begun and has no name yet."""
    if (unfinished_folder(path) / ASKED).is_file():  # of a fine-tuning, or a training of vectors
        return UserError(f"{path}: this run has not finished; its command goes on with --resume")
    return UserError(f"{path}: {what}")


@contextmanager
def unfinished(
    out: Path,
    *,
    advice: str = ELSEWHERE,
    resume: bool = False,
    keeps: Callable[[BaseException], bool] = lambda error: False,
    last: Callable[[Path], None] = lambda folder: None,
) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end; no other process of Bakeoff writes to it.

    Args:
        out: the place.
        advice: the end of the message where the place is taken.
        resume: go on with the folder that is there; else it is made anew.
        keeps: whether the folder stays after an error, to be gone on with; else it is removed.
        last: what is done in the folder just before it gets its name, and not interrupted by a signal.

    Raises:
        UserError: `out` is taken, cannot be made, or another process is making it.
        DiskFull: there is no space for it.
        Interrupted: a signal came while the folder got its name; it has it. Inside of `stop_signals` it is noted there.
    """
    require_free(out, advice=advice)
    folder = unfinished_folder(out)
    with ExitStack() as stack:
        stack.enter_context(_errors_of(out))
        stack.enter_context(held(own_folder(folder), out) if resume else fresh(folder, out))
        try:
            yield folder
            with stop_signals() as stopping:
                _name(folder, out, advice, last)
        except BaseException as error:
            if not keeps(error):
                remove(folder)
            raise
        if stopping and not are_noted():
            raise Interrupted(f"stopped when all was done: {out} is whole", stopping[0])


def _name(folder: Path, out: Path, advice: str, last: Callable[[Path], None]) -> None:
    left = [*folder.rglob(".*.partial")]  # by a process that was killed; all are removed first, for `as_new` makes such
    for file in left:
        if file.is_file():
            file.unlink()
    for file in [*folder.rglob("*")]:
        if file.is_file():
            as_new(file)
        sync(file)
    last(folder)
    sync(folder)
    require_free(out, advice=advice)
    if out.is_dir():
        out.rmdir()  # an empty one
    folder.rename(out)
    sync(out.absolute().parent)


@contextmanager
def _errors_of(out: Path) -> Iterator[None]:
    """Name the place in the system's errors."""
    try:
        with full_disk(out, lambda: "nothing was kept"):
            yield
    except OSError as error:
        raise UserError(f"{out}: cannot be made: {error.strerror or error}") from None
