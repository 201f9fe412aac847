"""The mean of a training's last weights, as a run of its own (Vaswani et al. 2017, section 6.1; Wu et al. 2019)."""

from collections.abc import Collection, Sequence
from pathlib import Path

from torch import Tensor, nn

from bakeoff import checksums
from bakeoff.checksums import Damaged
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.distributed.shards import load_whole, whole
from bakeoff.durable import beside, own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.resources.device import Placement
from bakeoff.runs.derived_run import write_derived
from bakeoff.runs.run import Run
from bakeoff.tensors import load_tensors, save_tensors
from bakeoff.trainer.position import Position
from bakeoff.training.validation import HeldOut, validate

SNAPSHOTS = 100
"""Snapshots of a training's weights, if all were kept. The papers' trainings kept about as many checkpoints:
one in ten minutes of twelve hours (Vaswani et al. 2017), one an epoch of about a hundred (Wu et al. 2019, WMT)."""


MOVED = "move it, choose another --out, or switch the average off (--average-last 0)"
"""Advice where something stands at the average's place."""


def snapshot_steps(steps: int, count: int) -> list[int]:
    """The steps after which weights are kept for their mean, in rising order; fewer where a training is too short.

    Args:
        steps: number of steps of the whole training.
        count: number of snapshots for the mean; the last one is of the last step.
    """
    apart = max(1, steps // SNAPSHOTS)
    return [step for step in range(steps - (count - 1) * apart, steps + 1, apart) if step > 0] if count else []


def average_path(out: Path, count: int) -> Path:
    """The path, beside the run, of the mean of its last `count` snapshots."""
    out = out if out.name not in ("", "..") else out.resolve()
    return out.with_name(f"{out.name}-average-{count}")


def is_average_of(run: Run, path: Path) -> bool:
    """Whether the finished run at a path is the mean of a run's snapshots."""
    return (path / "summary.json").is_file() and str(Run(path).environment.get("origin")).startswith(_origin(run))


def _origin(run: Run) -> str:
    return f"from {run.path}: the mean of its weights"


class Snapshots:
    """Keeps the weights after some steps, for their mean.

    Args:
        run: the run.
        module: the module.
        steps: the steps.
        processes: the processes that train the module; the first one writes.
    """

    def __init__(self, run: Run, module: nn.Module, steps: Collection[int], processes: Processes = ALONE) -> None:
        self.run, self.module, self.steps, self.processes = run, module, set(steps), processes

    def due(self, step: int, before: int, after: int) -> bool:
        """Whether weights are kept after a step."""
        return step in self.steps

    def keep(self, position: Position) -> None:
        """Write the weights to the file of their step, whole or not at all."""
        self.processes.write(self._write, position, whole(self.module.state_dict(), self.processes))

    def _write(self, position: Position, tensors: dict[str, Tensor]) -> None:
        run = self.run
        own_folder(run.snapshots).mkdir(exist_ok=True)
        file = snapshot_file(run, position.step)
        partial = beside(file)
        save_tensors(tensors, partial)
        checksums.forget(run.snapshots, [file.name])
        partial.replace(file)
        checksums.record(run.snapshots, [file.name])
        sync(run.snapshots)


def write_average(
    run: Run, module: PretrainingModel, held_out: HeldOut, placement: Placement, processes: Processes = ALONE
) -> Run:
    """Write a run with the mean of a finished run's snapshots, and remove the snapshots.

    Args:
        run: the finished run.
        module: the run's model; its weights are replaced by the mean.
        held_out: the held-out text, and the rows of it that the loss is measured on.
        placement: where the module is, and its precision.
        processes: the processes that have trained it; they measure together, and the first one writes.

    Raises:
        UserError: a snapshot cannot be read, or something stands at the new run's place.
    """
    count, summary = run.recipe.training.average_last, run.summary
    steps = snapshot_steps(summary["steps"], count)
    load_whole(module, _mean(run, steps))
    counters = {name: run.metrics()[-1][name] for name in ("step", "tokens", "flops", "seconds")}
    line = {"kind": "validation", **counters, **validate(module, held_out, placement, processes)}
    about = {**run.environment, "origin": f"{_origin(run)} after steps {', '.join(map(str, steps))}"}
    path = average_path(run.path, count)
    summary = {**summary, "validation": line}
    weights = whole(module.state_dict(), processes)
    averaged = processes.once(lambda: write_derived(run, path, weights, about, [line], summary, MOVED))
    processes.write(remove, run.snapshots)
    return averaged


def _mean(run: Run, steps: Sequence[int]) -> dict[str, Tensor]:
    """The mean of each tensor over the snapshots, added up in float64; integer tensors, counters, are the last."""
    sums: dict[str, Tensor] = {}
    tensors: dict[str, Tensor] = {}
    for step in steps:
        file = snapshot_file(run, step)
        try:
            if not file.is_file():
                raise Damaged(f"{file}: missing", "")
            tensors = load_tensors(file)
        except Damaged as error:
            raise UserError(
                f"{error.problem}: the training has finished, but its average needs this snapshot; "
                f"delete {run.snapshots} to do without"
            ) from None
        for name, tensor in tensors.items():
            if tensor.is_floating_point():
                sums[name] = sums[name].add_(tensor) if name in sums else tensor.double()
    return {**tensors, **{name: (total / len(steps)).to(tensors[name].dtype) for name, total in sums.items()}}


def snapshot_file(run: Run, step: int) -> Path:
    """The file of the weights after a step."""
    return run.snapshots / f"step-{step:08d}.safetensors"
