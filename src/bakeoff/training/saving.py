"""Weights that are kept on the way: after each point of `training.save_at` a run of its own in the run's `saved`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.distributed.shards import whole
from bakeoff.durable import own_folder, remove, sync
from bakeoff.errors import UserError
from bakeoff.optimization.save_points import SavePoint
from bakeoff.runs.derived_run import write_derived
from bakeoff.runs.run import Run
from bakeoff.trainer.position import Position
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.summary import summary_of

MISSED_AT_THE_END = 0.01
"""Share of a point in tokens by which the end of the training may miss it and still be that point, because a budget in
tokens becomes steps of an average size."""


class Saver:
    """The points of a training at which its weights are kept.

    Args:
        run: the run.
        unit: what is trained.
        corpus: the text.
        kept: called after weights were kept, where one process trains alone: others would wait for it.
    """

    def __init__(self, run: Run, unit: Pretraining, corpus: AnyCorpus, kept: Callable[[], None] | None = None) -> None:
        self.run, self.unit, self.corpus, self.kept = run, unit, corpus, kept
        asked = run.recipe.training.save_at
        self.steps = unit.steps
        self.points = [] if asked is None else asked.points()
        self.reached: list[SavePoint] = []
        a_unit = {"tokens": 1.0, "words": unit.stages.words_per_token, "epochs": 1 / max(1, unit.stages.tokens_a_pass)}
        self.in_steps = {each: round(self._steps(each)) for each in self.points if each.unit not in a_unit}
        self.in_tokens = {each: each.amount / one for each in self.points if (one := a_unit.get(each.unit, 0.0)) > 0}

    def _steps(self, point: SavePoint) -> float:
        return max(1.0, point.amount * self.steps) if point.unit == "shares" else point.amount

    def due(self, step: int, before: int, after: int) -> bool:
        """Whether a step reaches points; at the last step also those in tokens that the end just misses.

        Args:
            step: number of steps done, that step included.
            before: tokens seen before the step.
            after: tokens seen after it.
        """
        reach = after if step < self.steps else max(after / (1 - MISSED_AT_THE_END), 2 * after - before)
        self.reached = [point for point, steps in self.in_steps.items() if steps == step]
        self.reached += [point for point, tokens in self.in_tokens.items() if before < tokens <= reach]
        return bool(self.reached)

    def beyond(self, tokens_a_step: float) -> Iterator[str]:
        """A line on the points that the training will not reach, as far as its mean batch tells."""
        last = self.steps * tokens_a_step / (1 - MISSED_AT_THE_END)
        lost = [point for point in self.points if self.in_steps.get(point, 0) > self.steps]
        lost += [point for point in self.points if self.in_tokens.get(point, 0.0) > last + tokens_a_step]
        lost += [point for point in self.points if point not in self.in_steps and point not in self.in_tokens]
        if lost:
            shown = ", ".join(map(str, lost[:3])) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
            yield f"it ends at step {self.steps:,}, so that nothing is saved at {shown}: give a larger --budget"

    def keep(self, position: Position) -> None:
        """Write the present weights as a finished run for each of the points, with the metrics so far."""
        validation = self.unit.measured_here(position)
        weights = whole(self.unit.module.state_dict(), self.unit.processes)
        self.unit.processes.write(self._write, position, validation, weights)
        if self.kept is not None and self.unit.processes.alone:
            self.kept()

    def _write(self, position: Position, validation: dict[str, Any], weights: dict[str, Tensor]) -> None:
        own_folder(self.run.saved).mkdir(exist_ok=True)
        lines = self.run.metrics()
        if validation not in lines:
            lines = [*lines, validation]
        summary = {**summary_of(self.unit, position, self.corpus), "validation": validation}
        for point in self.reached:
            path = self.run.saved / point.folder
            remove(path)  # of a course that was given up, see `forget`
            saved = {**summary, "saved_at": str(point)}
            write_derived(self.run, path, weights, self.run.environment, lines, saved, "move it")

    def forget(self, step: int) -> None:
        """Remove what was saved after a step from which the training goes on, and what a kill left half-written."""
        if not self.run.saved.is_dir():
            return
        for path in sorted(own_folder(self.run.saved).iterdir()):
            if path.name.startswith(".") or _step_of(path) > step:
                remove(path)
        sync(self.run.saved)


def _step_of(path: Path) -> int:
    """The step of a saved run; one that cannot be read counts as after all others."""
    try:
        return int(Run(path).summary["steps"])
    except (UserError, OSError):
        return 1 << 62
