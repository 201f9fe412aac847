"""What a search has done and found: its journal, from which it goes on, and its results."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.json_files import read_json
from bakeoff.tuning.engine import Outcome
from bakeoff.tuning.ranges import Range

RECIPE, RESULTS, REPORT = "recipe.yaml", "results.json", "report.html"
"""What a search leaves, in the order in which it is written."""

State = Literal["finished", "stopped", "diverged"]


class Trial(Config):
    """One set of values, and how far it has been trained."""

    number: int
    """Counted from 0; its run is `trials/NNN`."""
    values: dict[str, Any]
    """The searched keys."""
    steps: int
    """Steps of its whole training."""
    looks: list[int]
    """The steps behind which it is compared with the others; the last is its end."""
    losses: list[float] = Field(default=[])
    """Its held-out loss at each of them, as far as it has been trained."""
    seconds: float = 0.0
    """Time in its steps."""
    tokens: int = 0
    """Tokens seen."""
    diverged: str | None = None
    """What was said where its loss was not a number any more."""

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"{self.number:03d}"

    @property
    def state(self) -> State:
        """What became of it, once the search has ended."""
        if self.diverged is not None:
            return "diverged"
        return "finished" if len(self.losses) == len(self.looks) else "stopped"

    @property
    def loss(self) -> float | None:
        """Its last held-out loss."""
        return None if self.diverged is not None or not self.losses else self.losses[-1]

    @property
    def step(self) -> int:
        """The step of its last held-out loss."""
        return self.looks[len(self.losses) - 1] if self.losses else 0

    def after(self, outcome: Outcome) -> "Trial":
        """The trial with what has become of it."""
        found: dict[str, Any] = {"seconds": outcome.seconds, "tokens": outcome.tokens, "diverged": outcome.diverged}
        if outcome.loss is not None:
            found["losses"] = [*self.losses, outcome.loss]
        return self.model_copy(update=found)


class Journal(Config):
    """search.json: what was asked for, and every trial as far as it is."""

    settings: dict[str, Any]
    """All that decides the outcome; the same command goes on, another one is refused."""
    trials: list[Trial] = Field(min_length=1)
    """All of them, begun or not."""
    threads: int | None = None
    """Threads of every trial, which decide the last bits of its loss; None: as many as torch had."""

    @classmethod
    def read(cls, path: Path) -> "Journal":
        """Read it.

        Raises:
            UserError: it is damaged.
        """
        return cls.parse(read_json(path), str(path), strict=True)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        checksums.write(path, self.model_dump_json(indent=1) + "\n")


class TuningResults(Config):
    """Everything that the report and the table show."""

    recipe: str
    """The recipe's name."""
    corpus: str
    """The corpus, as it was given."""
    corpus_fingerprint: str
    """What tells its content from others."""
    budget: str
    """What one whole trial may spend."""
    seed: int
    """The seed of all trials."""
    measured_as: list[str]
    """Keys under whose values in the recipe all trials were measured, because they were searched below them."""
    ranges: list[Range]
    """What was searched, the learning rate first."""
    trials: list[Trial]
    """All trials by their number."""
    states: list[State]
    """What became of each."""
    best: int
    """The number of the best one."""
    before: dict[str, Any]
    """The recipe's own values of the searched keys."""
    seconds: float
    """Time in the steps of all trials."""
    tokens: int
    """Tokens that they have seen."""
    full_trainings: float
    """The same in full trainings."""
    environment: dict[str, Any]
    """Machine and versions."""
    cautions: list[str]
    """What to know before relying on it."""

    @classmethod
    def read(cls, path: Path) -> "TuningResults":
        """Read `results.json`.

        Raises:
            UserError: the file is missing or is not a search's results.
        """
        return cls.parse(read_json(path), f"{path}: not the results of a search", strict=True)

    @property
    def ranked(self) -> list[Trial]:
        """The best first; those that were trained longer before those that were stopped earlier."""

        def place(trial: Trial) -> tuple[bool, float, float, int]:
            loss = trial.loss
            share = len(trial.losses) / len(trial.looks)
            return loss is None, -share, 0.0 if loss is None else loss, trial.number

        return sorted(self.trials, key=place)

    @property
    def winner(self) -> Trial:
        """The best trial."""
        return self.trials[self.best]
