"""Trackio, which keeps what it is told in a database on this machine: `trackio show`."""

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout

from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "trackio"
"""What is to be installed."""
ANEW = False
"""Its database keeps what earlier processes have sent."""


class Trackio:
    """One run of a project."""

    def __init__(self, training: TrackedTraining) -> None:
        import trackio

        # Nothing is sent to a Space: that takes a name which is not given here. What it prints is not our result.
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
        """Take numbers that belong to a step."""
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Wait until all of it is in the database."""
        with redirect_stdout(sys.stderr):
            self.run.finish()


def begin(training: TrackedTraining) -> Trackio:
    """Begin to mirror a training."""
    return Trackio(training)
