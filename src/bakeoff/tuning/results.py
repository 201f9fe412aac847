"""The journal of a search, from which it goes on, and its results."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, ClassVar, Literal

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.jobs.job import Outcome
from bakeoff.json_files import read_json
from bakeoff.tuning.ranges import Range

RECIPE, RESULTS, REPORT = "recipe.yaml", "results.json", "report.html"
"""Files of a finished search, in the order in which they are written."""

TrialState = Literal["finished", "stopped", "diverged"]


class SeedRun(Config):
    """The training of one seed, of a trial with several seeds."""

    losses: list[float] = Field(default=[])
    """Held-out loss at each evaluation so far."""
    seconds: float = 0.0
    """Seconds in optimizer steps."""
    tokens: int = 0
    """Tokens seen."""
    diverged: str | None = None
    """The message of a training whose loss was not a number any more; None: it did not diverge."""

    def after(self, outcome: Outcome) -> "SeedRun":
        """The seed's run with the outcome of one more evaluation."""
        losses = self.losses if outcome.loss is None else [*self.losses, outcome.loss]
        return SeedRun(losses=losses, seconds=outcome.seconds, tokens=outcome.tokens, diverged=outcome.diverged)


class Trial(Config):
    """One set of values with the state of its training."""

    renamed: ClassVar[Mapping[str, str]] = {"looks": "evaluations"}

    number: int
    """Number of the trial, from 0; the run is `trials/NNN`, or `trials/NNN-seed-S` with several seeds."""
    values: dict[str, Any]
    """The values of the searched keys."""
    steps: int
    """Optimizer steps of the trial's whole training."""
    evaluations: list[int]
    """The steps after which the trial is compared with the others; the last is its end."""
    losses: list[float] = Field(default=[])
    """Held-out loss at each evaluation so far: the mean over the trial's seeds."""
    seconds: float = 0.0
    """Seconds in optimizer steps, all seeds together."""
    tokens: int = 0
    """Tokens seen, all seeds together."""
    diverged: str | None = None
    """The message of the first seed whose loss was not a number any more; None: no seed diverged."""
    runs: list[SeedRun] = Field(default=[])
    """The run of each seed, where the trial has several."""

    @property
    def name(self) -> str:
        """The number with three digits, which names the trial's directory."""
        return f"{self.number:03d}"

    @property
    def state(self) -> TrialState:
        """`diverged`, `finished` or `stopped`; the last is known once the search has ended."""
        if self.diverged is not None:
            return "diverged"
        return "finished" if len(self.losses) == len(self.evaluations) else "stopped"

    @property
    def loss(self) -> float | None:
        """The held-out loss at the trial's last evaluation; None: the trial diverged, or has had no evaluation yet."""
        return None if self.diverged is not None or not self.losses else self.losses[-1]

    @property
    def step(self) -> int:
        """The step of the last held-out loss; 0 where there is none."""
        return self.evaluations[len(self.losses) - 1] if self.losses else 0

    @property
    def begun(self) -> bool:
        """Whether a seed of the trial has a loss already, or diverged."""
        runs: list[SeedRun] | list[Trial] = self.runs or [self]
        return any(run.losses or run.diverged is not None for run in runs)

    @property
    def spreads(self) -> list[float]:
        """The standard deviation over seeds at each evaluation; empty where there is one seed."""
        evaluations = range(len(self.losses) if len(self.runs) > 1 else 0)
        return [stdev(run.losses[evaluation] for run in self.runs) for evaluation in evaluations]

    def waits_for(self, seed: int, evaluation: int) -> bool:
        """Whether a seed, by its index, is still to be trained up to an evaluation."""
        run = self.runs[seed] if self.runs else self
        return run.diverged is None and len(run.losses) == evaluation

    def after(self, outcome: Outcome, seed: int = 0) -> "Trial":
        """The trial with the outcome of one more evaluation of a seed, by its index."""
        if self.runs:
            runs = [run.after(outcome) if index == seed else run for index, run in enumerate(self.runs)]
            evaluations = range(min(len(run.losses) for run in runs))
            update: dict[str, Any] = {
                "runs": runs,
                "losses": [fmean(run.losses[evaluation] for run in runs) for evaluation in evaluations],
                "seconds": sum(run.seconds for run in runs),
                "tokens": sum(run.tokens for run in runs),
                "diverged": next((run.diverged for run in runs if run.diverged is not None), None),
            }
            return self.model_copy(update=update)
        update = {"seconds": outcome.seconds, "tokens": outcome.tokens, "diverged": outcome.diverged}
        if outcome.loss is not None:
            update["losses"] = [*self.losses, outcome.loss]
        return self.model_copy(update=update)


class SearchJournal(Config):
    """The journal, search.json: the settings of the search and the state of every trial."""

    settings: dict[str, Any]
    """Settings that decide the outcome; a command with the same settings goes on, one with others is refused."""
    trials: list[Trial] = Field(min_length=1)
    """All trials, begun or not."""
    threads: int | None = None
    """Threads of every trial, which decide the last bits of its loss; None: as many as torch had."""

    @classmethod
    def read(cls, path: Path) -> "SearchJournal":
        """Read the journal.

        Raises:
            UserError: the file is damaged.
        """
        return cls.parse(read_json(path), str(path), strict=True)

    def write(self, path: Path) -> None:
        """Write the journal, whole or not at all."""
        checksums.write(path, self.model_dump_json(indent=1) + "\n")


class RateForBudget(Config):
    """The rate of the best trial, transferred to another budget."""

    budget: str
    """The other budget."""
    steps: int
    """The steps that the other budget pays for."""
    rate: float
    """The rate for the other budget."""
    rule: str
    """The rule by which the rate was transferred, in words."""


class TuningResults(Config):
    """The results of a search, for its report and for the table on the terminal."""

    renamed: ClassVar[Mapping[str, str]] = {"carried": "transferred"}

    recipe: str
    """The recipe's name."""
    corpus: str
    """The corpus, as it was given."""
    corpus_fingerprint: str
    """Hexadecimal digits that identify the corpus's content."""
    budget: str
    """Budget of one whole trial."""
    seed: int
    """The seed of all trials, or the first of them."""
    seeds: int = 1
    """Number of seeds of each trial: `seed` and the numbers that follow it."""
    measured_as: list[str]
    """Parts of the recipe that all trials were measured under, because a key below them was searched; else empty."""
    ranges: list[Range]
    """Ranges of the searched keys, the learning rate first."""
    trials: list[Trial]
    """All trials by their number."""
    states: list[TrialState]
    """State of each trial: diverged, finished or stopped."""
    best: int
    """Number of the best trial."""
    before: dict[str, Any]
    """The recipe's own values of the searched keys."""
    seconds: float
    """Seconds in the optimizer steps of all trials."""
    tokens: int
    """Tokens that all trials have seen."""
    full_trainings: float
    """Cost of the search, in full trainings."""
    environment: dict[str, Any]
    """Machine and versions."""
    cautions: list[str]
    """Sentences of caution before relying on the best trial."""
    transferred: RateForBudget | None = None
    """The rate for another budget; None: no other budget was asked for."""

    @classmethod
    def read(cls, path: Path) -> "TuningResults":
        """Read `results.json`.

        Raises:
            UserError: the file is missing or is not a search's results.
        """
        return cls.parse(read_json(path), f"{path}: not the results of a search", strict=True)

    @property
    def ranked(self) -> list[Trial]:
        """The trials from best to worst; trials that were trained longer come before trials stopped earlier."""

        def rank(trial: Trial) -> tuple[bool, float, float, int]:
            loss = trial.loss
            share = len(trial.losses) / len(trial.evaluations)
            return loss is None, -share, 0.0 if loss is None else loss, trial.number

        return sorted(self.trials, key=rank)

    @property
    def winner(self) -> Trial:
        """The trial with the lowest held-out loss of those that were trained to their end."""
        return self.trials[self.best]
