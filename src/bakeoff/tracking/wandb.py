"""Weights & Biases: sent to its server where the user is logged in, else kept beside the run for `wandb sync`."""

import hashlib
import os
from collections.abc import Mapping

from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "wandb"
"""What is to be installed."""
ANEW = False
"""What earlier processes have sent stays."""


class WeightsAndBiases:
    """One run of a project."""

    def __init__(self, training: TrackedTraining) -> None:
        import wandb

        place = str(training.place.absolute())
        # The same training has the same id, so that a resumed one goes on with its curves.
        identity = hashlib.sha256(f"{place}/{training.name}".encode()).hexdigest()[:16]
        self.run = wandb.init(
            project=training.project,
            name=training.name,
            id=identity,
            resume="allow",
            config=dict(training.settings),
            dir=place,
            mode=None if os.environ.get("WANDB_MODE") else "online" if _logged_in() else "offline",
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True, x_disable_stats=True),
        )
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Take numbers that belong to a step."""
        self.run.log({**numbers, "step": step})

    def close(self) -> None:
        """Send or write what is left."""
        self.run.finish()


def _logged_in() -> bool:
    """Whether the library itself finds that the user is; nobody is asked."""
    import wandb

    return bool(wandb.login(prompt=False))


def begin(training: TrackedTraining) -> WeightsAndBiases:
    """Begin to mirror a training."""
    return WeightsAndBiases(training)
