"""The interface of trackers, which take the numbers of one training line by line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class TrackedTraining(NamedTuple):
    """A training whose lines are mirrored."""

    name: str
    """The name of the training in the tracker: its path below `place`."""
    place: Path
    """The folder that holds the training: the parent of a run, or a comparison."""
    settings: Mapping[str, Any]
    """The content of environment.json, with the recipe."""

    @property
    def project(self) -> str:
        """The name of the project, by which trackers group trainings."""
        return self.place.absolute().name or "bakeoff"


class Tracker(Protocol):
    """A tracker of one training."""

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Take the numbers of a step."""

    def close(self) -> None:
        """End the training's record in this process."""
