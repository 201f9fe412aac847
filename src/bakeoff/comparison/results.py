"""The results of a comparison: one tree of facts, to which report and exports add nothing of their own."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, StartFacts, TaskFacts
from bakeoff.comparison.plan import SearchPlan
from bakeoff.comparison.statistics import Difference, Spread
from bakeoff.config import Config
from bakeoff.display.spreadsheet import write_table
from bakeoff.durable import write_atomically
from bakeoff.json_files import read_json
from bakeoff.tuning.results import TuningResults

Initialisation = Literal["pretrained", "scratch"]


class CurvePoint(Config):
    """One validation during a pre-training."""

    step: int
    """Optimizer steps done."""
    tokens: int
    """Tokens seen."""
    seconds: float
    """Time spent in training, without validation."""
    flops: float
    """Floating-point operations spent."""
    losses: dict[str, float]
    """Validation loss of each objective, nats a target."""
    bits_per_byte: dict[str, float] = Field(default={})
    """Validation loss of each objective that predicts every token, bits a byte of text."""
    accuracy: dict[str, float] = Field(default={})
    """Fraction of right predictions of each objective."""


class PretrainingRun(Config):
    """A finished pre-training of one recipe and seed: its size, its cost and its curve of losses."""

    seed: int
    """The seed of the comparison that it belongs to."""
    path: str
    """The run's directory, relative to the results."""
    steps: int
    """Optimizer steps done."""
    tokens: int
    """Tokens seen."""
    seconds: float
    """Time spent."""
    work_seconds: float | None = None
    """Work done, on a CPU in processor time of all threads; none where it was not measured."""
    flops: float
    """Floating-point operations spent."""
    tokens_per_second: float
    """Speed over the whole run."""
    peak_memory_bytes: int | None
    """The most memory held, where it could be measured."""
    unigram_entropy: float | None
    """Loss of guessing every token by its frequency alone, nats; a model near it has learned nothing else."""
    validation_loss: float | None = None
    """The last validation loss, of all objectives together; None in results of older versions."""
    curve: list[CurvePoint]
    """The run's validations in order."""


class FinetuningScore(Config):
    """One fine-tuning: how well one initialisation of one recipe does on one task."""

    task: str
    """The task's name."""
    seed: int
    """The seed of the pre-training (or of the random weights) that it starts from."""
    finetune_seed: int
    """Which of the fine-tunings nested in that seed."""
    initialisation: Initialisation
    """Whether the weights were pre-trained or random."""
    learning_rate: float
    """The learning rate, chosen on dev where the plan gives several."""
    dev: dict[str, float]
    """Metrics on dev, shares as fractions."""
    test: dict[str, float]
    """Metrics on test, shares as fractions."""
    predictions: str
    """The file of the test predictions, relative to the results."""
    transferred_tensors: int
    """How many tensors came from the pre-training."""
    best_epoch: float | None
    """The epoch that did best on dev, whose weights were tested."""
    seconds: float
    """Time spent."""


class RecipeEntry(Config):
    """A recipe with its pre-trainings, its search and all scores of its fine-tunings."""

    label: str
    """The recipe's label in the report."""
    recipe: dict[str, Any]
    """The complete recipe, with the values that its search has found."""
    search: TuningResults | None = None
    """The search of its values; None where they are its own."""
    start: StartFacts | None = None
    """The run from which the first weights come; None: they are random, as they are always from scratch."""
    parameters: int
    """Distinct trainable numbers, heads of pre-training included."""
    flops_per_token: float
    """Floating-point operations to train on one token."""
    steps: int
    """Optimizer steps that the budget allows it."""
    runs: list[PretrainingRun]
    """One pre-training a seed."""
    scores: list[FinetuningScore]
    """The scores of the recipe's fine-tunings."""


class Failure(Config):
    """A recipe that is left out because one of its trainings diverged."""

    recipe: str
    """The recipe's label."""
    seed: int
    """The seed at which it happened."""
    training: str
    """Which training it was."""
    message: str
    """What was said."""


class Floor(Config):
    """A method without any neural network: what every recipe has to beat."""

    task: str
    """The task's name."""
    kind: Literal["simplest", "learned"]
    """What answers without a model, or what learns without a neural network."""
    name: str
    """The method in words."""
    dev: dict[str, float]
    """Metrics on dev."""
    test: dict[str, float]
    """Metrics on test."""
    chosen: dict[str, Any] = Field(default={})
    """What was chosen on dev."""

    @model_validator(mode="before")
    @classmethod
    def _of_older_comparisons(cls, values: Any) -> Any:
        """Give the floors of results from before other tasks than classification their present fields."""
        names = {
            "majority": ("simplest", "most frequent class"),
            "tfidf_logistic_regression": ("learned", "TF-IDF with logistic regression"),
        }
        if isinstance(values, Mapping) and "name" not in values and values.get("kind") in names:
            kind, name = names[values["kind"]]
            return {**values, "kind": kind, "name": name}
        return values


class Analysis(Config):
    """The statistics of one task; see `bakeoff.comparison.statistics`."""

    task: str
    """The task's name."""
    pretrained: dict[str, Spread]
    """The metric over seeds of each recipe, pre-trained."""
    scratch: dict[str, Spread] = Field(default={})
    """The metric over seeds of each recipe, from random weights."""
    pairs: list[Difference] = Field(default=[])
    """Every two recipes, pre-trained."""
    gains: dict[str, Difference] = Field(default={})
    """The difference between pre-trained and random weights, by recipe."""


class Results(Config):
    """All that a comparison found."""

    title: str
    """Heading of the report."""
    created: str
    """When this was written, ISO 8601."""
    planned_seeds: list[int]
    """The seeds of the plan."""
    finished_seeds: list[int]
    """The seeds that have finished; all other fields are about these alone."""
    finetune_seeds: int
    """Fine-tunings nested in each seed."""
    device: str
    """The device that the plan asked for."""
    budget: BudgetFacts
    """What every pre-training was allowed."""
    search: SearchPlan | None = None
    """The search of each recipe before its trainings; None: there was none."""
    corpus: CorpusFacts
    """What was pre-trained on."""
    tasks: list[TaskFacts]
    """The tasks of the fine-tunings."""
    recipes: list[RecipeEntry]
    """What was compared, in the plan's order."""
    failures: list[Failure] = Field(default=[])
    """Recipes of the plan that are left out everywhere else, because a training of theirs diverged."""
    floors: list[Floor]
    """The scores without pre-training that every recipe has to beat."""
    analyses: list[Analysis]
    """The statistics, one entry a task."""
    machine: dict[str, str]
    """Facts of the machine."""
    versions: dict[str, str]
    """Versions of the software."""

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read `results.json`.

        Raises:
            UserError: the file is missing or is not a comparison's results.
        """
        return cls.parse(read_json(path), f"{path}: not the results of a comparison")

    def write_json(self, path: Path) -> None:
        """Write `results.json`, whole or not at all."""
        write_atomically(path, self.model_dump_json(indent=1) + "\n")

    def write_csv(self, path: Path) -> None:
        """Write `results.csv`: one row for each recipe, seed, task, fine-tuning seed and initialisation."""
        metrics = sorted({name for entry in self.recipes for score in entry.scores for name in score.test})
        header = ["recipe", "seed", "task", "finetune_seed", "initialisation", "learning_rate", "best_epoch"]
        header += [f"{split}_{name}" for split in ("dev", "test") for name in metrics]
        header += [
            "transferred_tensors",
            "finetune_seconds",
            "parameters",
            "flops_per_token",
            "pretrain_steps",
        ]
        header += [
            "pretrain_tokens",
            "pretrain_seconds",
            "pretrain_work_seconds",
            "pretrain_flops",
            "tokens_per_second",
            "peak_memory_bytes",
        ]
        rows = [header]
        for entry in self.recipes:
            runs = {run.seed: run for run in entry.runs}
            for score in entry.scores:
                run = runs[score.seed] if score.initialisation == "pretrained" else None
                rows.append(_row(entry, score, run, metrics))
        text = io.StringIO()
        write_table(text, rows)
        write_atomically(path, text.getvalue())


def _row(entry: RecipeEntry, score: FinetuningScore, run: PretrainingRun | None, metrics: list[str]) -> list[Any]:
    """One row of the table; what a recipe from scratch has not spent stays empty."""
    names = ("steps", "tokens", "seconds", "work_seconds", "flops", "tokens_per_second", "peak_memory_bytes")
    return [
        *(
            entry.label,
            score.seed,
            score.task,
            score.finetune_seed,
            score.initialisation,
            score.learning_rate,
        ),
        *(score.best_epoch, *(split.get(name) for split in (score.dev, score.test) for name in metrics)),
        *(score.transferred_tensors, score.seconds, entry.parameters, entry.flops_per_token),
        *(None if run is None else getattr(run, name) for name in names),
    ]
