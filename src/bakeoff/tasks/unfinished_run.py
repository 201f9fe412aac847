"""The folder of an unfinished fine-tuning: beside its final place until the end, and resumed by --resume."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.config import Config, with_defaults
from bakeoff.durable import own_folder, remove, sync, write_atomically
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.json_files import read_json
from bakeoff.machine.launch import require_torchrun
from bakeoff.recipe import Recipe
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.same_settings import require_same
from bakeoff.signals import stop_signals
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.unfinished import ASKED, ELSEWHERE, require_free, unfinished, unfinished_folder, what_stands
from bakeoff.yaml_files import parse_yaml


def require_no_run(out: Path) -> None:
    """Refuse a directory that holds something, or that several processes would write to which know nothing of others.

    Raises:
        UserError: `out` is not empty, or not a directory; or another launcher than torchrun has started several
            processes.
    """
    require_torchrun(out)
    require_free(out, "a fine-tuned run" if FinetunedRun.at(out) else what_stands(out))


UNNAMED = ("run to start from", "set of labels", "content of the files", "texts")
"""Inputs that are compared by a digest, or too long for a message."""


@contextmanager
def resumable(
    out: Path, asked: dict[str, Any], resume: bool = False, config: type[Config] = FinetuneConfig
) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end.

    After a stop by a signal or a kill the folder stays and can be resumed. After an error it stays if it has a
    checkpoint, unless the loss diverged. Else it is removed.

    Args:
        out: the directory of the finished run.
        asked: all inputs on which the result depends.
        resume: go on with the folder that is there, if any, provided that its inputs were the same.
        config: the config of the settings among the inputs.

    Raises:
        UserError: `out` holds something, its folder cannot be written to, the folder to be resumed had other inputs, or
            it has checkpoints and is not to be resumed.
    """
    require_no_run(out)
    if not resume:
        _require_nothing_kept(out)
    begun = resume and (unfinished_folder(out) / ASKED).is_file()
    refused = begun  # until it is known that it is gone on with

    def keeps(error: BaseException) -> bool:
        # Memory that was short, a disk that was full, or Ctrl-C after the trainings, where no loop looks for it.
        return refused or isinstance(error, Interrupted) or (not isinstance(error, Diverged) and bool(_kept(out)))

    try:
        with unfinished(out, resume=begun, keeps=keeps, last=_finish) as folder:
            if begun:
                _require_current(out, folder)
                require_same_inputs(out, folder, asked, f"{ELSEWHERE}, or {_anew(out)}", config)
                refused = False
                remove(_aside(folder))  # a kill came as the folder was to get its name
                for left in (folder / checksums.NAME, *folder.glob(".*.partial")):
                    left.unlink(missing_ok=True)
            else:
                write_atomically(folder / ASKED, json.dumps(asked))
            yield folder
    except KeyboardInterrupt:
        if not _kept(out):
            raise
        raise Interrupted("stopped; the same command with --resume goes on", signal.SIGINT) from None


def _finish(folder: Path) -> None:
    """Record checksums, and remove the checkpoints last, for until then a kill needs them."""
    checksums.record(folder, [file.name for file in folder.iterdir() if file.is_file()])
    sync(folder)
    if (checkpoints := own_folder(_checkpoints(folder))).exists():  # in one step: a kill leaves all or none
        checkpoints.rename(_aside(folder))
        remove(_aside(folder))


def _checkpoints(folder: Path) -> Path:
    return folder / "checkpoints"


def _aside(folder: Path) -> Path:
    return folder / ".checkpoints.removed"


def _kept(out: Path) -> list[Path]:
    """The checkpoints of the unfinished training of `out`."""
    return list_checkpoints(_checkpoints(unfinished_folder(out)))


def _require_current(out: Path, folder: Path) -> None:
    """Refuse the checkpoints of an older version, which stood beside the other files."""
    if any(folder.glob("checkpoint-*")):
        raise UserError(
            f"{out}: stopped in a version that saved in another form; go on with that version, or {_anew(out)}"
        )


def _require_nothing_kept(out: Path) -> None:
    """Refuse to drop the checkpoints of a training that was stopped."""
    if kept := _kept(out):
        step = int(kept[-1].name.removeprefix("step-"))
        raise UserError(f"{out}: a training was stopped here after step {step:,}; go on with --resume, or {_anew(out)}")


def _anew(out: Path) -> str:
    """Advice on how to begin anew where something unfinished is kept."""
    return f"delete {out.parent / unfinished_folder(out).name} to begin anew"


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


def what_is_kept(out: Path, given: str = "with more space, ", what: str = "fine-tuning") -> str:
    """A sentence for an error: what is left of the fine-tuning of `out`, and what to type where it is `given`."""
    if _kept(out):
        return f"a checkpoint is kept: {given}the same command with --resume goes on"
    return f"nothing of this {what} was kept"


def require_same_inputs(
    out: Path, folder: Path, asked: dict[str, Any], advice: str, config: type[Config] = FinetuneConfig
) -> None:
    """Refuse to go on with a fine-tuning, finished or not, that was begun with other inputs.

    Args:
        out: the fine-tuning, as the user names it.
        folder: its folder.
        asked: the inputs that are asked for now.
        advice: the end of the error.
        config: the config of the settings among the inputs.

    Raises:
        UserError: an input differs; the message names the first one.
    """
    before, now = (_readable(inputs, config) for inputs in (read_json(folder / ASKED), asked))
    require_same(out, before, now, advice, UNNAMED)


def _readable(inputs: dict[str, Any], config: type[Config]) -> dict[str, Any]:
    """Inputs by the words with which an error names them, with defaults for keys that configs have got since."""
    named = {key.replace("_", " "): value for key, value in inputs.items()}
    if isinstance(named.get("recipe"), str):  # as older versions wrote it
        named["recipe"] = parse_yaml(named["recipe"], ASKED)
    for key, made_by in (("recipe", Recipe), ("setting of the training", config)):
        named[key] = with_defaults(named.get(key), made_by)
    return named
