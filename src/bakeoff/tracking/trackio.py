"""Trackio, which keeps numbers in a database on this machine: `trackio show`."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout

from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "trackio"
"""The package to install."""
ANEW = False
"""Whether a tracker is filled from the first line each time: Trackio's database keeps lines of earlier processes."""


class Trackio:
    """A training as a run of a Trackio project."""

    def __init__(self, training: TrackedTraining) -> None:
        import trackio

        # Without the name of a Space nothing leaves this machine. Standard output is for results alone.
        with redirect_stdout(sys.stderr):
            self.run = trackio.init(
                project=training.project,
                name=training.name,
                config=dict(training.settings),
                resume="allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add the numbers of a step."""
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Wait until all numbers are in the database."""
        with redirect_stdout(sys.stderr):
            self.run.finish()


def begin(training: TrackedTraining) -> Trackio:
    """The tracker of a training, which continues an earlier record of the same name."""
    return Trackio(training)
