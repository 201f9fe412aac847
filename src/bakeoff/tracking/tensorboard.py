"""Event files for TensorBoard: `tensorboard --logdir FOLDER/tensorboard`."""

from collections.abc import Mapping

from bakeoff.durable import remove
from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "tensorboard"
"""The package to install."""
ANEW = True
"""Whether a tracker is filled from the first line each time: event files are rewritten, so that no step is there
twice."""


class TensorBoard:
    """The folder of a training's event files."""

    def __init__(self, training: TrackedTraining) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = training.place / "tensorboard" / training.name
        remove(folder, training.place)
        self.writer = SummaryWriter(str(folder), flush_secs=5)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Write the numbers of a step."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write everything to the disk."""
        self.writer.close()


def begin(training: TrackedTraining) -> TensorBoard:
    """The tracker of a training; older event files of that training are removed."""
    return TensorBoard(training)
