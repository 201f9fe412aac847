"""The folder of an unfinished fine-tuning: beside its final place until the end, and resumed by --resume."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.durable import fresh, held, holds_something, own_folder, remove, sync, write_atomically
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.json_files import read_json
from bakeoff.machine.launch import require_one_process
from bakeoff.signals import stop_signals
from bakeoff.tasks.finetuned_run import FinetunedRun


def require_free(out: Path) -> None:
    """Refuse a directory that holds something, or that several processes of a launcher would write to.

    Raises:
        UserError: `out` is not empty, or not a directory; or a launcher has started more than this process.
    """
    require_one_process(out)
    if holds_something(out):
        what = "a fine-tuned run" if FinetunedRun.at(out) else "something else"
        raise UserError(f"{out}: holds {what} already; choose another --out")


CHECKPOINT = "checkpoint-"
"""The beginning of the names of checkpoint folders in an unfinished run; a number follows."""


PARTIAL = ".checkpoint.partial"
"""The folder in which a checkpoint is written until it is whole."""


ASKED = "asked.json"
"""The file with the inputs of a fine-tuning, by which --resume recognises it."""


@contextmanager
def unfinished(out: Path, asked: dict[str, Any], resume: bool = False) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end.

    After a stop by a signal or a kill the folder stays and can be resumed. After an error it stays if it has a
    checkpoint, unless the loss diverged. Else it is removed.

    Args:
        out: the directory of the finished run.
        asked: all inputs on which the result depends.
        resume: go on with the folder that is there, if any, provided that its inputs were the same.

    Raises:
        UserError: `out` holds something, its folder cannot be written to, or the folder to be resumed had other inputs.
    """
    require_free(out)
    folder = unfinished_folder(out)
    with ExitStack() as stack:
        try:
            if resume and (folder / ASKED).is_file():
                stack.enter_context(held(own_folder(folder), out))
                remove(folder / PARTIAL)
                (folder / checksums.NAME).unlink(missing_ok=True)  # a kill came as the folder was to get its name
                require_same(folder, asked, f"{out}: cannot be resumed, because it", "leave --resume out to begin anew")
            else:
                stack.enter_context(fresh(folder, out))
                write_atomically(folder / ASKED, json.dumps(asked))
        except OSError as error:
            raise UserError(f"{out}: cannot be made: {error.strerror}") from None
        kept = False
        try:
            yield folder
            with stop_signals() as stopping:
                _finish(folder, out)
            if stopping:
                raise Interrupted(f"stopped when the fine-tuning was over: {out} is whole", stopping[0])
        except Interrupted:
            kept = True
            raise
        except Diverged:  # and would again
            raise
        except BaseException as error:
            # Memory that was short, a disk that was full, or Ctrl-C behind the trainings, where no loop looks for it.
            kept = any(folder.glob(f"{CHECKPOINT}*"))
            if kept and isinstance(error, KeyboardInterrupt):
                raise Interrupted("stopped; the same command with --resume goes on", signal.SIGINT) from None
            raise
        finally:
            if not kept:
                remove(folder)


def _finish(folder: Path, out: Path) -> None:
    """Give a folder with all results its final place; its checkpoints go last, for until then a kill needs them."""
    checkpoints = [*folder.glob(f"{CHECKPOINT}*")]
    remove(folder / PARTIAL)
    files = [file for file in folder.iterdir() if file not in checkpoints]
    for file in files:
        sync(file)
    checksums.record(folder, [file.name for file in files])
    sync(folder)
    require_free(out)
    for checkpoint in checkpoints:
        remove_checkpoint(checkpoint)
    folder.rename(out)
    sync(out.absolute().parent)


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove a checkpoint of an unfinished run in one step: a kill leaves all of it, or none under its name."""
    partial = own_folder(checkpoint).with_name(PARTIAL)
    remove(partial)
    checkpoint.rename(partial)
    remove(partial)


@contextmanager
def saved_if_interrupted(save: Callable[[], None]) -> Iterator[None]:
    """Call a function that saves a checkpoint when Ctrl-C or another signal interrupts what is done inside."""
    try:
        yield
    except KeyboardInterrupt:
        with stop_signals():
            save()
        raise


def done_already(out: Path) -> bool:
    """Whether `out` is a finished fine-tuning of which `require_same` can tell the inputs."""
    return FinetunedRun.at(out) and (out / ASKED).is_file()


def what_is_kept(out: Path) -> str:
    """A sentence for an error: what is left of the fine-tuning of `out`, and what to type."""
    if any(unfinished_folder(out).glob(f"{CHECKPOINT}*")):
        return "a checkpoint is kept: with more space, the same command with --resume goes on"
    return "nothing of this fine-tuning was kept"


def unfinished_folder(out: Path) -> Path:
    """The folder of the unfinished fine-tuning of `out`."""
    return out.absolute().with_name(f".{out.absolute().name}.unfinished")


def require_same(folder: Path, asked: dict[str, Any], refusal: str, advice: str) -> None:
    """Refuse a fine-tuning, finished or not, that was begun with other inputs.

    Args:
        folder: its folder.
        asked: the inputs that are asked for now.
        refusal: the beginning of the error, up to "was begun with another".
        advice: the end of the error.

    Raises:
        UserError: an input differs; the message names the first one.
    """
    before = read_json(folder / ASKED)
    for key in asked:
        own = before.get(key) if isinstance(before, dict) else None
        if own != asked[key]:
            raise UserError(f"{refusal} was begun with another {key.replace('_', ' ')}; {advice}")
