"""The scores of checkpoints while the training goes on, so that a participant sees the curve from its first point."""

from collections.abc import Callable

import torch

from bakeoff.challenge.evaluation import Evaluation
from bakeoff.errors import Interrupted, UserError
from bakeoff.resources.device import resolve_device
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals, stopped_by


class OnTheWay:
    """Scores the checkpoints that are there and not yet scored; called between two steps of a training.

    The training waits for it, and does not learn of it: its random numbers and its clock stay as they were, the model
    that is scored is read from the disk, and what cannot be scored now is scored after the training. A signal ends it
    within a batch, for the training to answer.

    Args:
        evaluation: what is to be scored.
        run_of: gives the run of a checkpoint by its name; None: it is not there yet.
        write: called after scores were added.
        say: called with a line on each checkpoint.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        run_of: Callable[[str], Run | None],
        write: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self.evaluation, self.run_of, self.write, self.say = evaluation, run_of, write, say

    def __call__(self) -> None:
        """Score what is there."""
        device = resolve_device(self.evaluation.device)
        devices = [device.index or 0] if device.type == "cuda" else []
        with torch.random.fork_rng(devices), stop_signals() as stopping:

            def look() -> None:
                if stopping:
                    raise Interrupted("scores are made after the training", stopping[0])

            try:
                with stopped_by(look):
                    self.evaluation.score(self.run_of, self.say)
            except Interrupted:
                return
            except (UserError, torch.OutOfMemoryError) as error:
                self.say(f"not scored while the training goes on, but after it: {str(error).splitlines()[0]}")
            self.write()
