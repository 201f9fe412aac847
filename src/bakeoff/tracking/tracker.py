"""What every tracker is: something that takes the numbers of one training, line by line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class TrackedTraining(NamedTuple):
    """The training whose lines are mirrored."""

    name: str
    """What it is called in the tracker: its path below `place`."""
    place: Path
    """The folder that holds it: the one that a run stands in, or that of a comparison."""
    settings: Mapping[str, Any]
    """The recipe and the rest of what its environment.json says."""

    @property
    def project(self) -> str:
        """What a tracker groups trainings by."""
        return self.place.absolute().name or "bakeoff"


class Tracker(Protocol):
    """Takes the numbers of one training."""

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Take numbers that belong to a step."""

    def close(self) -> None:
        """Nothing more will come from this process."""
