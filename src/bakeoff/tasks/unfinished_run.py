"""The folder of a fine-tuning that is not finished: beside its place until the end, and gone on with by --resume."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.durable import fresh, held, holds_something, own_folder, remove, sync, write_atomically
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.json_files import read_json
from bakeoff.tasks.finetuned_run import FinetunedRun


def require_free(out: Path) -> None:
    """Refuse a directory that holds something.

    Raises:
        UserError: `out` is not empty, or not a directory.
    """
    if holds_something(out):
        what = "a fine-tuned run" if FinetunedRun.at(out) else "something else"
        raise UserError(f"{out}: holds {what} already; choose another --out")


CHECKPOINT = "checkpoint-"
"""How the folders of an unfinished run begin from which it can be resumed; a number follows."""


PARTIAL = ".checkpoint.partial"
"""The folder in which a checkpoint is written until it is whole."""


ASKED = "asked.json"
"""What an unfinished fine-tuning was asked for, by which it is known again."""


@contextmanager
def unfinished(out: Path, asked: dict[str, Any], resume: bool = False) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end.

    Behind a stop by a signal and behind a kill it can be resumed, and behind an error too if it has a checkpoint; else
    it is removed.

    Args:
        out: where the run is to be.
        asked: all that its result follows from.
        resume: go on with the folder that is there, if any, and asked for the same.

    Raises:
        UserError: `out` holds something, its folder cannot be written to, or what is to be resumed was asked for
            something else.
    """
    require_free(out)
    folder = unfinished_folder(out)
    with ExitStack() as stack:
        try:
            if resume and (folder / ASKED).is_file():
                stack.enter_context(held(own_folder(folder), out))
                remove(folder / PARTIAL)
                _require_same(read_json(folder / ASKED), asked, out)
            else:
                stack.enter_context(fresh(folder, out))
                write_atomically(folder / ASKED, json.dumps(asked))
        except OSError as error:
            raise UserError(f"{out}: cannot be made: {error.strerror}") from None
        kept = False
        try:
            yield folder
            for rest in [*folder.glob(f"{CHECKPOINT}*"), folder / PARTIAL]:
                remove(rest)
            (folder / ASKED).unlink()
            for file in folder.iterdir():
                sync(file)
            checksums.record(folder, [file.name for file in folder.iterdir()])
            sync(folder)
            require_free(out)
            folder.rename(out)
            sync(out.absolute().parent)
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


def what_is_kept(out: Path) -> str:
    """What an error has left of the fine-tuning that was to become `out`, and what to type."""
    if any(unfinished_folder(out).glob(f"{CHECKPOINT}*")):
        return "a checkpoint is kept: with more space, the same command with --resume goes on"
    return "nothing of this fine-tuning was kept"


def unfinished_folder(out: Path) -> Path:
    """The folder of a fine-tuning that will become `out`."""
    return out.absolute().with_name(f".{out.absolute().name}.unfinished")


def _require_same(before: Any, asked: dict[str, Any], out: Path) -> None:
    """Refuse to go on with what was asked for something else.

    Raises:
        UserError: it was; the message names the first that differs.
    """
    for key in asked:
        own = before.get(key) if isinstance(before, dict) else None
        if own != asked[key]:
            raise UserError(
                f"{out}: cannot be resumed, because it was begun with another {key.replace('_', ' ')}; leave --resume "
                "out to begin anew"
            )
