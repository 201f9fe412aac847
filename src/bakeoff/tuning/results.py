"""The journal of a search, from which it goes on, and its results."""

from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.json_files import read_json
from bakeoff.tuning.engine import TrialOutcome
from bakeoff.tuning.ranges import Range

RECIPE, RESULTS, REPORT = "recipe.yaml", "results.json", "report.html"
"""What a search leaves, in the order in which it is written."""

TrialState = Literal["finished", "stopped", "diverged"]


class SeedRun(Config):
    """What has become of one seed of a trial that has several."""

    losses: list[float] = Field(default=[])
    """Held-out loss at each look so far."""
    seconds: float = 0.0
    """Seconds in optimizer steps."""
    tokens: int = 0
    """Tokens seen."""
    diverged: str | None = None
    """The message where the loss was not a number any more; None: it did not diverge."""

    def after(self, outcome: TrialOutcome) -> "SeedRun":
        """The seed's run behind one more look, with what came of it."""
        losses = self.losses if outcome.loss is None else [*self.losses, outcome.loss]
        return SeedRun(losses=losses, seconds=outcome.seconds, tokens=outcome.tokens, diverged=outcome.diverged)


class Trial(Config):
    """One set of values, and how far it has been trained."""

    number: int
    """Counted from 0; its run is `trials/NNN`, or with several seeds `trials/NNN-seed-S`."""
    values: dict[str, Any]
    """The values of the searched keys."""
    steps: int
    """Steps of its whole training."""
    looks: list[int]
    """The steps after which the trial is compared with the others; the last is its end."""
    losses: list[float] = Field(default=[])
    """Held-out loss at each look so far: the mean over the trial's seeds."""
    seconds: float = 0.0
    """Seconds in optimizer steps, all seeds together."""
    tokens: int = 0
    """Tokens seen, all seeds together."""
    diverged: str | None = None
    """The message where the loss of one seed was not a number any more; None: no seed diverged."""
    runs: list[SeedRun] = Field(default=[])
    """The run of each seed, where the trial has several."""

    @property
    def name(self) -> str:
        """The name of its directory."""
        return f"{self.number:03d}"

    @property
    def state(self) -> TrialState:
        """Whether it diverged, finished or was stopped, once the search has ended."""
        if self.diverged is not None:
            return "diverged"
        return "finished" if len(self.losses) == len(self.looks) else "stopped"

    @property
    def loss(self) -> float | None:
        """The held-out loss at its last look; None: it diverged, or had no look yet."""
        return None if self.diverged is not None or not self.losses else self.losses[-1]

    @property
    def step(self) -> int:
        """The step of its last held-out loss."""
        return self.looks[len(self.losses) - 1] if self.losses else 0

    @property
    def begun(self) -> bool:
        """Whether anything is known of it."""
        runs: list[SeedRun] | list[Trial] = self.runs or [self]
        return any(run.losses or run.diverged is not None for run in runs)

    @property
    def spreads(self) -> list[float]:
        """The standard deviation over seeds at each look; empty where there is one seed."""
        looks = range(len(self.losses) if len(self.runs) > 1 else 0)
        return [stdev(run.losses[look] for run in self.runs) for look in looks]

    def waits_for(self, seed: int, look: int) -> bool:
        """Whether the seed of that place is still to be trained up to a look."""
        run = self.runs[seed] if self.runs else self
        return run.diverged is None and len(run.losses) == look

    def after(self, outcome: TrialOutcome, seed: int = 0) -> "Trial":
        """The trial with what has become of the seed of that place."""
        if self.runs:
            runs = [run.after(outcome) if place == seed else run for place, run in enumerate(self.runs)]
            looks = range(min(len(run.losses) for run in runs))
            found: dict[str, Any] = {
                "runs": runs,
                "losses": [fmean(run.losses[look] for run in runs) for look in looks],
                "seconds": sum(run.seconds for run in runs),
                "tokens": sum(run.tokens for run in runs),
                "diverged": next((run.diverged for run in runs if run.diverged is not None), None),
            }
            return self.model_copy(update=found)
        found = {"seconds": outcome.seconds, "tokens": outcome.tokens, "diverged": outcome.diverged}
        if outcome.loss is not None:
            found["losses"] = [*self.losses, outcome.loss]
        return self.model_copy(update=found)


class SearchJournal(Config):
    """search.json: what was asked for, and every trial as far as it is."""

    settings: dict[str, Any]
    """All that decides the outcome; the same command goes on, another one is refused."""
    trials: list[Trial] = Field(min_length=1)
    """All of them, begun or not."""
    threads: int | None = None
    """Threads of every trial, which decide the last bits of its loss; None: as many as torch had."""

    @classmethod
    def read(cls, path: Path) -> "SearchJournal":
        """Read the journal.

        Raises:
            UserError: it is damaged.
        """
        return cls.parse(read_json(path), str(path), strict=True)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        checksums.write(path, self.model_dump_json(indent=1) + "\n")


class CarriedRate(Config):
    """The rate of the best trial, carried to another budget."""

    budget: str
    """The other budget."""
    steps: int
    """The steps that the other budget pays for."""
    rate: float
    """The rate for the other budget."""
    rule: str
    """What was done, in words."""


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
    """The seed of all trials, or the first of them."""
    seeds: int = 1
    """Number of seeds of each trial: `seed` and the numbers that follow it."""
    measured_as: list[str]
    """Keys under whose values in the recipe all trials were measured, because they were searched below them."""
    ranges: list[Range]
    """What was searched, the learning rate first."""
    trials: list[Trial]
    """All trials by their number."""
    states: list[TrialState]
    """The result of each trial."""
    best: int
    """The number of the best one."""
    before: dict[str, Any]
    """The recipe's own values of the searched keys."""
    seconds: float
    """Time in the steps of all trials."""
    tokens: int
    """Tokens that they have seen."""
    full_trainings: float
    """Cost of the search, in full trainings."""
    environment: dict[str, Any]
    """Machine and versions."""
    cautions: list[str]
    """What to know before relying on it."""
    carried: CarriedRate | None = None
    """The rate for the budget that was asked for; None: none was."""

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
        """The trial with the lowest held-out loss among those that went to the end."""
        return self.trials[self.best]
