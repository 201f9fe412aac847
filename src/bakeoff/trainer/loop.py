"""The loop of every training: steps, and between them figures, evaluations, checkpoints and the end."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Generic, NamedTuple

import torch

from bakeoff.batching.batches import prefetch
from bakeoff.display.progress import TrainingProgress
from bakeoff.errors import Interrupted
from bakeoff.learner.running_average import RunningAverage
from bakeoff.resources.device import work_clock
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.trainer.checkpoint import load_checkpoint, taken_checkpoint
from bakeoff.trainer.checkpoint_writer import CheckpointWriter
from bakeoff.trainer.position import Position
from bakeoff.trainer.save_plan import Keeper, SavePlan
from bakeoff.trainer.shortage import RanOut, Resized, cut, ended, taken
from bakeoff.trainer.step import optimize
from bakeoff.trainer.unit import M, Unit

READ_EVERY = {"cpu": 1, "cuda": 16, "mps": 16}
"""Number of steps after which figures are read from the device; every reading waits for the device."""


class Taken(NamedTuple):
    """A step that was taken; its figures are still on the device."""

    tokens: int
    """The number of tokens of the step, on all processes."""
    figures: dict[str, torch.Tensor]
    """This process's share of each mean loss, and the gradient's norm, as scalars on the device."""


def steps(
    unit: Unit[M],
    position: Position,
    last: int,
    average: RunningAverage | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[Taken]:
    """Take the steps from a position up to `last`, and move the position; between them the caller does what is due.

    A step that runs out of memory is taken anew in smaller micro-batches, where the unit allows for it; `say` gets a
    line about it.

    Raises:
        RanOut: a step ran out of memory, and cannot be taken anew by itself.
    """
    unit.begin()
    coming = prefetch(unit.batches, position.step, last)
    while (micro_batches := next(coming, None)) is not None:
        now = micro_batches, position.step
        figures = taken(unit, *now, say) if unit.fits_memory else optimize(unit, *now)
        if figures is None:
            coming.close()
            coming = prefetch(unit.batches, position.step, last)
            continue
        if average is not None and unit.average is not None:
            average.update(unit.average.rate(position.step + 1, unit.steps))
        tokens = int(unit.processes.sums([sum(batch.tokens for batch in micro_batches)])[0])
        position.flops += tokens * unit.flops(position.step)
        position.step += 1
        position.tokens += tokens
        yield Taken(tokens, figures)


class Trainer(Generic[M]):
    """A training of a unit, from its start or a checkpoint to its end.

    Args:
        unit: what is trained.
        run: the directory of its metrics and checkpoints.
        shown: where figures are shown.
        plan: the times of checkpoints.
        keepers: keep weights on the way.
        watch: called with the position whenever figures are read; an exception of it ends the training.

    Attributes:
        position: the progress; its sums and seconds go up to the step whose figures were read last.
    """

    def __init__(
        self,
        unit: Unit[M],
        run: Run,
        shown: TrainingProgress,
        plan: SavePlan,
        keepers: Sequence[Keeper] = (),
        watch: Callable[[Position], None] | None = None,
    ) -> None:
        self.unit, self.run, self.shown, self.plan, self.keepers, self.watch = unit, run, shown, plan, keepers, watch
        self.position = Position()
        self.average = None if unit.average is None else RunningAverage(unit.module)
        self.unread: list[Taken] = []
        self.read_every = READ_EVERY[unit.placement.device.type]
        self.read_at = (0.0, 0.0)
        self.saved_at = time.monotonic()
        self.saved_step = 0
        self.writer = CheckpointWriter()
        unit.settle = self.writer.finish

    @property
    def over(self) -> bool:
        """Whether the training has reached its end, or what is trained has ended it."""
        return self.position.step >= self.unit.steps or self.unit.over

    def resume(self) -> bool:
        """Go on from the newest checkpoint; returns False, and clears the metrics, if there is none."""
        processes = self.unit.processes
        newest = processes.once(lambda: next(reversed(list_checkpoints(self.run.checkpoints)), None))
        if newest is None:
            processes.write(self.run.metrics_file.clear)
            return False
        self.position = load_checkpoint(newest, self.unit, self.run, self.average)
        self.saved_step = self.position.step
        return True

    def train(self, stopping: Sequence[int], until: int | None = None) -> None:
        """Train to the end, or until a step and save a checkpoint there; checkpoints are written meanwhile.

        Args:
            stopping: the signals that have come and ask to stop; see `stop_signals`.
            until: the step; None: the end.

        Raises:
            Interrupted: a signal came; everything is saved.
            Diverged: a loss is not a number any more; the last checkpoint stays.
            Resized: memory ran out, micro-batches are smaller, and another trainer goes on from the last checkpoint.
            UserError: memory ran out in one of several processes that cannot go on.
            OSError: a checkpoint could not be written.
        """
        try:
            with self.writer:  # which ends its work before the training ends, however it does
                self._train(stopping, until)
        except RanOut as shortage:
            at = self.position.step, self.saved_step
            if not shortage.together:
                raise ended(self.unit, *at) from None
            raise Resized(cut(self.unit, *at), self.unit.micro_batch) from None

    def _train(self, stopping: Sequence[int], until: int | None) -> None:
        position, unit = self.position, self.unit
        if position.step == 0 and unit.fits_memory and not unit.processes.alone:
            self.save()  # what ends all processes can be gone on with
        if position.step == 0 and 0 in unit.evaluations:
            self.evaluate()
        self.saved_at, self.read_at = time.monotonic(), self._now()
        last = position.step if self.over else max(position.step, min(until or unit.steps, unit.steps))
        for step in steps(unit, position, last, self.average, self._cut):
            self.unread.append(step)
            self.writer.check()
            caught = self._between_steps(position.step == until, stopping)
            if self.over:
                break
            if caught is not None:
                self.writer.finish()
                unit.processes.wait()  # until the first one has saved
                raise Interrupted(f"stopped at step {position.step}; {unit.how_to_go_on}", caught)

    def _between_steps(self, saves: bool, stopping: Sequence[int]) -> int | None:
        """Do what is due after a step; `saves`: a checkpoint is. Returns the signal that was answered, if any."""
        position, unit = self.position, self.unit
        step, tokens = position.step, self.unread[-1].tokens
        logs, evaluates = unit.logs(step), step in unit.evaluations
        keepers = [each for each in self.keepers if each.due(step, position.tokens - tokens, position.tokens)]
        waits = logs or evaluates or saves or bool(keepers)
        if waits or len(self.unread) >= self.read_every:
            self._read()
        if logs:
            unit.processes.write(self.run.metrics_file.append, unit.log(position))
            position.begin_line()
        if evaluates:
            self.evaluate()
        for keeper in keepers:
            with self.run_weights():
                keeper.keep(position)
        due = self.plan.due(time.monotonic() - self.saved_at, not self.saved_step, evaluates)
        due, caught = self._agreed(due, stopping[0] if stopping else None)  # once, because one may come at any time
        saves |= due
        if (saves or caught is not None) and (self.plan.at_end or step < unit.steps):
            self._read()
            self._begin_saving()
        if waits or saves:
            self.read_at = self._now()
        return caught

    def _agreed(self, due: bool, caught: int | None) -> tuple[bool, int | None]:
        """Whether a checkpoint is due on the first process, and a signal that has come to any of them."""
        everywhere = self.unit.processes.gathered([due, caught or 0])
        return bool(everywhere[0][0]), int(max(number for _, number in everywhere)) or None

    def _cut(self, line: str) -> None:
        """Say that micro-batches are smaller from here on, and save, so that a resumed training has the same parts."""
        self.shown.line(line)
        if self.position.step != self.saved_step:
            self._read()
            self.save()
        self.writer.finish()  # also what was begun at this step

    def evaluate(self) -> None:
        """Evaluate the present weights, and write and show the figures."""
        with self.run_weights():
            began = time.perf_counter()
            evaluation = self.unit.evaluate(self.position)
            self.position.evaluation_seconds += time.perf_counter() - began
        self.unit.processes.write(self.run.metrics_file.append, evaluation.line)
        self.shown.beside = f"  {evaluation.shown}"
        self.unit.begin()

    def save(self) -> None:
        """Write a checkpoint, and wait for it."""
        with self.writer:
            self._begin_saving()

    def _begin_saving(self) -> None:
        """Begin to write a checkpoint of the training as it stands."""
        with self.run_weights():
            checkpoint = taken_checkpoint(self.unit, self.run, self.position, self.average)
            if checkpoint is not None:
                self.writer.begin(checkpoint.write)
                if checkpoint.arrived is None:
                    self.writer.finish()
        self.saved_step, self.saved_at = self.position.step, time.monotonic()

    def take_average(self) -> None:
        """Give the module the running average, where there is one, for good."""
        if self.average is not None:
            self.average.exchange()
            self.average = None

    def run_weights(self) -> AbstractContextManager[None]:
        """A context in which the module has the weights that are measured and saved."""
        return nullcontext() if self.average is None else self.average.in_use()

    def _now(self) -> tuple[float, float]:
        """Seconds on the clock, and seconds of work by `work_clock` that checkpoints have no part in."""
        device = self.unit.placement.device
        beside = self.writer.work_seconds if device.type == "cpu" else 0.0
        return time.perf_counter(), work_clock(device) - beside

    def _read(self) -> None:
        """Wait for the device and add up the figures of the steps since the last reading, in their order.

        Raises:
            Diverged: a figure is not a finite number.
        """
        position, unit = self.position, self.unit
        if not self.unread:
            return
        names = list(self.unread[-1].figures)
        rows = self._of_all(torch.stack([torch.stack(list(each.figures.values())) for each in self.unread]).tolist())
        tokens = sum(each.tokens for each in self.unread)
        self.unread.clear()
        for step, row in enumerate(rows, position.step - len(rows) + 1):
            figures = dict(zip(names, row, strict=True))
            unit.require_finite(figures, step)
            for name, value in figures.items():
                position.sums[name] = position.sums.get(name, 0.0) + value
        before, self.read_at = self.read_at, self._now()
        work = unit.processes.sums([self.read_at[1] - before[1]])[0]
        position.add(len(rows), tokens, self.read_at[0] - before[0], work)
        weights = unit.weights(position.step - 1)
        loss = sum(weights[name] * value for name, value in zip(names, rows[-1], strict=True) if name in weights)
        left = (unit.steps - position.step) * position.seconds / position.step
        self.shown.step(position.step, loss, position.since_tokens / position.since_seconds, left)
        if self.watch is not None:
            self.watch(position)

    def _of_all(self, rows: list[list[float]]) -> list[list[float]]:
        """The figures of steps from this process's: shares of losses add up, and the norm, the last, is the same."""
        processes = self.unit.processes
        if processes.alone:
            return rows
        losses = iter(processes.sums([value for *shares, _ in rows for value in shares]))
        return [[*islice(losses, len(row) - 1), row[-1]] for row in rows]
