"""Weights & Biases: numbers go to its server if the user is logged in, else beside the run for `wandb sync`."""

import hashlib
import os
from collections.abc import Mapping

from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "wandb"
"""The package to install."""
ANEW = False
"""Whether a tracker is filled from the first line each time: the server keeps lines of earlier processes."""


class WeightsAndBiases:
    """A training as a run of a Weights & Biases project."""

    def __init__(self, training: TrackedTraining) -> None:
        import wandb

        folder = str(training.place.absolute())
        # A training keeps its id, so that a resumed training continues its curves.
        identity = hashlib.sha256(f"{folder}/{training.name}".encode()).hexdigest()[:16]
        self.run = wandb.init(
            project=training.project,
            name=training.name,
            id=identity,
            resume="allow",
            config=dict(training.settings),
            dir=folder,
            mode=None if os.environ.get("WANDB_MODE") else "online" if _logged_in() else "offline",
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True, x_disable_stats=True),
        )
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add the numbers of a step."""
        self.run.log({**numbers, "step": step})

    def close(self) -> None:
        """Send or write all remaining numbers."""
        self.run.finish()


def _logged_in() -> bool:
    """Whether the library finds a login of the user, without asking for one."""
    import wandb

    return bool(wandb.login(prompt=False))


def begin(training: TrackedTraining) -> WeightsAndBiases:
    """The tracker of a training, which continues an earlier record of the same training."""
    return WeightsAndBiases(training)
