"""Checkpoints: written to another folder, synced, then renamed, so that a reader never sees half a checkpoint."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.config import Record
from bakeoff.distributed.shards import load_whole, loaded_like, own_part, whole
from bakeoff.durable import own_folder, remove, removed_after_an_error, sync
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.learner.running_average import RunningAverage
from bakeoff.machine.capacity import free_memory
from bakeoff.machine.transfer import arrival, fetched
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.signals import go_on
from bakeoff.stored_tensors import StoredTensors
from bakeoff.tensors import require_shapes, save_tensors
from bakeoff.trainer.divided_checkpoint import PartsOfTensors
from bakeoff.trainer.position import Position
from bakeoff.trainer.unit import M, Unit

KEPT = 2
"""Number of newest checkpoints that are kept."""

IN_PARTS_FROM = 3_000_000_000
"""Parameters from which processes that divide a model write their parts of it: with the state of AdamW 36 GB, which
the first process would have to gather, to copy and to write alone, in a minute or so."""

ROOM = 2
"""Times that the copies for a checkpoint have to fit into the free memory; else it is written before the next step."""


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


class Checkpoint(NamedTuple):
    """A checkpoint that is to be written."""

    run: Run
    """The run."""
    path: Path
    """The folder of the checkpoint."""
    state: str
    """The content of state.json."""
    tensors: Mapping[str, dict[str, Tensor]] | PartsOfTensors
    """The tensors by the names of the files, and by their names in these; or this process's parts of them."""
    arrived: Callable[[], None] | None
    """Waits for the last of the tensors' copies; None: there was no memory for copies, and the training must wait."""

    @property
    def partial(self) -> Path:
        """The folder that becomes the checkpoint's when all is in it."""
        return self.path.with_name(f".{self.path.name}.partial")

    def write(self) -> None:
        """Write it completely or not at all, then remove all but the newest checkpoints."""
        if self.arrived is not None:
            self.arrived()
        if isinstance(self.tensors, PartsOfTensors):
            first = self.tensors.processes.first
            with removed_after_an_error(self.partial, unless=lambda: not first):
                self.tensors.write(self.partial, self._complete)
            return
        make_anew(self.partial)
        with removed_after_an_error(self.partial):
            for name, tensors in self.tensors.items():
                save_tensors(tensors, self.partial / f"{name}.safetensors")
                go_on()
            self._complete()

    def _complete(self) -> None:
        """Give the folder with all tensors its name."""
        self.run.metrics_file.sync()  # first: a resumed training reads its evaluations from it
        complete(self.partial, self.path, self.state)
        for old in list_checkpoints(self.run.checkpoints)[:-KEPT]:
            remove(old)
        go_on()


def taken_checkpoint(
    unit: Unit[M], run: Run, position: Position, average: RunningAverage | None = None
) -> Checkpoint | None:
    """The checkpoint of a training as it stands; all processes of the training ask for it together.

    The module holds the weights that are measured, those of the running average where there is one. What the next step
    changes is copied, if the machine has memory for it.

    Returns:
        The checkpoint; None: it is written already, or the first process writes it alone, and this is another one.
    """
    processes = unit.processes
    live = {"model": unit.module.state_dict(), "optimizer": optimizer_tensors(unit.optimizer)}
    if average is not None:
        live[TRAINED] = average.tensors
    path = run.checkpoints / f"step-{unit.steps_before + position.step:08d}"
    in_parts = processes.shards and sum(each.numel() for each in unit.module.parameters()) >= IN_PARTS_FROM
    tensors = {**live, **unit.tensors()}
    if not in_parts:
        tensors = {name: whole(each, processes) for name, each in tensors.items()}
        if not processes.first or path.exists():
            return None
    elif processes.once(path.exists):
        return None
    state = {**asdict(position), **unit.state(), "metrics": run.metrics_file.mark() if processes.first else None}
    checkpoint = Checkpoint(run, path, json.dumps(state), tensors, None)
    if in_parts:
        processes.once(lambda: make_anew(checkpoint.partial))
        parts = PartsOfTensors(tensors, processes, processes.beside)
        mine = [own_part(tensor) for each in tensors.values() for tensor in each.values()]
        if not _has_room(mine, processes.on_this_machine):
            return checkpoint._replace(tensors=parts)
        return checkpoint._replace(tensors=parts.copied(), arrived=arrival({unit.placement.device}))
    changing = {
        (name, key): tensor
        for name, each in live.items()
        for key, tensor in each.items()
        if tensors[name][key].data_ptr() == own_part(tensor).data_ptr()  # also of a part that is all of a tensor
    }
    if not _has_room(changing.values()):
        return checkpoint
    for (name, key), tensor in changing.items():
        tensors[name][key] = fetched(own_part(tensor))
    return checkpoint._replace(arrived=arrival({tensor.device for tensor in changing.values()}))


def _has_room(tensors: Iterable[Tensor], processes: int = 1) -> bool:
    """Whether the machine has memory for so many processes' copies of tensors, and as much again for all else."""
    free = free_memory()
    return free is None or ROOM * processes * sum(tensor.nbytes for tensor in tensors) <= free


def load_checkpoint(path: Path, unit: Unit[M], run: Run, average: RunningAverage | None = None) -> Position:
    """Go on from a checkpoint; later lines of metrics.jsonl are removed.

    Returns:
        The position of the training.

    Raises:
        UserError: the checkpoint is damaged, or cannot be read.
    """
    with _damage_of(path):
        require_shapes(path / "model.safetensors", unit.module)
        unit.processes.share_out(sorted(checksums.listed(path)), lambda name: checksums.verify(path / name))
        load_whole(unit.module, StoredTensors(path / "model.safetensors", verified=True))
        fill_optimizer(unit.optimizer, path / "optimizer.safetensors")
        if average is not None:  # the module holds the average
            average.load(StoredTensors(path / f"{TRAINED}.safetensors", verified=True))
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


def make_anew(partial: Path) -> None:
    """Make the folder of an unfinished checkpoint, empty."""
    remove(own_folder(partial.parent) / partial.name)
    partial.mkdir(parents=True)


def complete(partial: Path, final: Path, state: str) -> None:
    """Write state.json and checksums into a folder with tensors, which becomes `final`."""
    (partial / "state.json").write_text(state, encoding="utf-8")
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
    stored = StoredTensors(path, verified=True)
    for name in stored:
        index, _, key = name.partition(".")
        number = int(index)  # ValueError if it is none
        states.setdefault(number, {})[key] = loaded_like(stored, name, parameters[number])
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
