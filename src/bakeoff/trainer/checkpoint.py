"""Checkpoints: written to another folder, synced, then renamed, so that a reader never sees half a checkpoint."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.config import Record
from bakeoff.distributed.shards import load_whole, placed_like, whole
from bakeoff.durable import own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.learner.running_average import RunningAverage
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.tensors import load_tensors, require_shapes, save_tensors
from bakeoff.trainer.position import Position
from bakeoff.trainer.unit import M, Unit

KEPT = 2
"""Number of newest checkpoints that are kept."""


class FileExtent(Record):
    """The length and digest of a growing file at a checkpoint."""

    bytes: int = Field(ge=0)
    """Length in bytes."""
    sha256: str
    """SHA-256 of these bytes."""


class CheckpointState(Record):
    """The state of a checkpoint besides its tensors; state.json."""

    step: int = Field(ge=0, lt=1 << 62)
    """Optimizer steps done."""
    tokens: int
    """Tokens seen."""
    flops: int
    """Floating-point operations spent."""
    seconds: float
    """Seconds spent in steps."""
    work_seconds: float = 0.0
    """Seconds of processor time spent in steps; 0 in checkpoints from before it was recorded."""
    sums: dict[str, float]
    """Sums of figures since the last line of metrics."""
    since: int
    """Number of steps in these sums."""
    since_tokens: int
    """Tokens in these steps."""
    since_seconds: float
    """Seconds in these steps."""
    metrics: FileExtent | None = None
    """The part of metrics.jsonl that belongs to the checkpoint; None: the checkpoint is from before it was recorded."""


TRAINED = "trained"
"""The name of the file with the weights that are trained, where the module holds their running average."""


def checkpoint_tensors(unit: Unit[M], average: RunningAverage | None = None) -> dict[str, dict[str, Tensor]]:
    """All tensors of a checkpoint, by the names of its files; all processes of the training ask for them together.

    The module holds the weights that are measured, those of the running average where there is one.
    """
    tensors = {"model": unit.module.state_dict(), "optimizer": optimizer_tensors(unit.optimizer), **unit.tensors()}
    if average is not None:
        tensors[TRAINED] = average.tensors
    return {name: whole(each, unit.processes) for name, each in tensors.items()}


def save_checkpoint(unit: Unit[M], run: Run, position: Position, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write a checkpoint of a training completely or not at all, then remove all but the newest checkpoints.

    Args:
        unit: what is trained.
        run: the run.
        position: the progress.
        tensors: the result of `checkpoint_tensors`.
    """
    final = run.checkpoints / f"step-{unit.steps_before + position.step:08d}"
    if final.exists():
        return
    partial = own_folder(run.checkpoints) / f".{final.name}.partial"
    with written_whole(partial, final, {**asdict(position), **unit.state(), "metrics": run.metrics_file.mark()}):
        for name, state in tensors.items():
            save_tensors(dict(state), partial / f"{name}.safetensors")
    for old in list_checkpoints(run.checkpoints)[:-KEPT]:
        remove(old)


def load_checkpoint(path: Path, unit: Unit[M], run: Run, average: RunningAverage | None = None) -> Position:
    """Go on from a checkpoint; later lines of metrics.jsonl are removed.

    Returns:
        The position of the training.

    Raises:
        UserError: the checkpoint is damaged, or cannot be read.
    """
    with _damage_of(path):
        require_shapes(path / "model.safetensors", unit.module)
        load_whole(unit.module, load_tensors(path / "model.safetensors"))
        fill_optimizer(unit.optimizer, path / "optimizer.safetensors")
        if average is not None:  # the module holds the average
            average.load(load_tensors(path / f"{TRAINED}.safetensors"))
            average.exchange()
        state = read_state(path)
    position = Position(**{name: state[name] for name in asdict(Position()) if name in state})

    def restored() -> list[dict[str, Any]]:
        run.metrics_file.restore(state.get("metrics"), position.step)
        return run.metrics() if run.metrics_file.path.is_file() else []

    lines = unit.processes.once(restored)
    with _damage_of(path):
        unit.load(path, state, lines)
    return position


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    try:
        yield
    except (UserError, ValueError, KeyError) as error:
        problem = error.problem if isinstance(error, Damaged) else str(error)
        rest = "goes on from the one before" if len(list_checkpoints(path.parent)) > 1 else "begins anew"
        raise UserError(f"{path}: this checkpoint is damaged ({problem}); delete it, and --resume {rest}") from None


def read_state(path: Path) -> dict[str, Any]:
    """The content of the state.json of a checkpoint.

    Raises:
        UserError: it is damaged.
    """
    return CheckpointState.check(read_json(path / "state.json"), str(path / "state.json"))


@contextmanager
def written_whole(partial: Path, final: Path, state: dict[str, Any]) -> Iterator[None]:
    """Make the folder `partial` for tensors; without an error it becomes `final`, with state.json and checksums."""
    remove(partial)
    partial.mkdir(parents=True)
    yield
    (partial / "state.json").write_text(json.dumps(state), encoding="utf-8")
    sync(partial / "state.json")
    checksums.record(partial, [file.name for file in partial.iterdir()])
    sync(partial)
    partial.rename(final)
    sync(final.parent)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer as tensors, named `INDEX.KEY` by the index of the parameter."""
    states = optimizer.state_dict()["state"]
    return {f"{index}.{key}": value for index, state in states.items() for key, value in state.items()}


def fill_optimizer(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Load the state of an optimizer from a file of `optimizer_tensors`.

    Raises:
        UserError: the file is damaged.
        ValueError: the file holds the state of another optimizer.
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in load_tensors(path).items():
        index, _, key = name.partition(".")
        states.setdefault(int(index), {})[key] = placed_like(tensor, parameters[int(index)])  # ValueError if no number
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
