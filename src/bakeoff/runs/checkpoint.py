"""Checkpoints: written to another folder, synced, then renamed, so that a reader never sees half a checkpoint."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.config import Record
from bakeoff.durable import own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.learner.running_average import RunningAverage
from bakeoff.tensors import fill, load_tensors, save_tensors

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


def save_checkpoint(
    folder: Path,
    step: int,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    memory: Memory | None = None,
    others: Mapping[str, dict[str, Tensor] | None] | None = None,
) -> Path:
    """Write `folder/step-NNNNNNNN` completely or not at all, then remove all but the newest checkpoints.

    `others` are further tensors, each by the name of its file: those that are trained, if the module holds their
    running average, and the best so far.
    """
    final = folder / f"step-{step:08d}"
    if final.exists():
        return final
    partial = own_folder(folder) / f".{final.name}.partial"
    with written_whole(partial, final, {**state, "step": step}):
        save_tensors(module.state_dict(), partial / "model.safetensors")
        save_tensors(optimizer_tensors(optimizer), partial / "optimizer.safetensors")
        for name, tensors in (others or {}).items():
            if tensors is not None:
                save_tensors(tensors, partial / f"{name}.safetensors")
        if memory is not None:
            save_tensors(memory.tensors(), partial / "memory.safetensors")
    for old in list_checkpoints(folder)[:-KEPT]:
        remove(old)
    return final


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


def list_checkpoints(folder: Path) -> list[Path]:
    """All complete checkpoints in a folder, the oldest first."""
    found = folder.glob("step-*") if folder.is_dir() else []
    return sorted(path for path in found if path.name.removeprefix("step-").isdecimal())


def run_folder(path: Path) -> Path:
    """The directory of the run whose checkpoint a path names, RUN/checkpoints/step-N; any other path itself."""
    path = path if path.name else path.resolve()
    if not (path / "state.json").is_file() or path.absolute().parent.name != "checkpoints":
        return path
    return path.parents[1] if len(path.parents) > 1 else path.absolute().parents[1]


def checkpoint_step(path: Path) -> int:
    """The number of optimizer steps before a checkpoint."""
    return int(path.name.removeprefix("step-"))


def load_checkpoint(
    path: Path,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    memory: Memory | None = None,
    average: RunningAverage | None = None,
) -> dict[str, Any]:
    """Load a checkpoint's tensors into a module, its optimizer, its memory and its running average.

    Returns:
        The content of state.json.

    Raises:
        UserError: the checkpoint is damaged, or cannot be read.
    """
    try:
        fill(module, path / "model.safetensors")
        fill_optimizer(optimizer, path / "optimizer.safetensors")
        if average is not None:  # the module holds the average
            average.load(load_tensors(path / "trained.safetensors"))  # KeyError where one is absent
            average.exchange()
        if memory is not None:
            memory.load(load_tensors(path / "memory.safetensors"))  # KeyError where one is absent
        return CheckpointState.check(read_json(path / "state.json"), str(path / "state.json"))
    except (UserError, ValueError, KeyError) as error:
        problem = error.problem if isinstance(error, Damaged) else str(error)
        rest = "goes on from the one before" if len(list_checkpoints(path.parent)) > 1 else "begins anew"
        raise UserError(f"{path}: this checkpoint is damaged ({problem}); delete it, and --resume {rest}") from None


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
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in load_tensors(path).items():
        index, _, key = name.partition(".")
        states.setdefault(int(index), {})[key] = tensor  # ValueError if no number
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
