"""Event files for TensorBoard: `tensorboard --logdir FOLDER/tensorboard`."""

from collections.abc import Mapping

from bakeoff.durable import remove
from bakeoff.tracking.tracker import TrackedTraining

INSTALL = "tensorboard"
"""What is to be installed."""
ANEW = True
"""Its files are made anew from all lines whenever a training is mirrored again, so that no step stands there twice."""


class TensorBoard:
    """One folder of event files."""

    def __init__(self, training: TrackedTraining) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = training.place / "tensorboard" / training.name
        remove(folder, training.place)
        self.writer = SummaryWriter(str(folder), flush_secs=5)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Take numbers that belong to a step."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Bring all of it to the disk."""
        self.writer.close()


def begin(training: TrackedTraining) -> TensorBoard:
    """Begin to mirror a training."""
    return TensorBoard(training)
