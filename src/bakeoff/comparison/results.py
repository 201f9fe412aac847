"""The results of a comparison: one tree of facts, to which report and exports add nothing."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from bakeoff.comparison.facts import BudgetFacts, CorpusFacts, MeasurementScore, StartFacts, TaskFacts
from bakeoff.comparison.latency import Latency, LatencyPlan
from bakeoff.comparison.layer_profiles import LayerSimilarity, RecipeLayers
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.planning.search_plan import SearchPlan
from bakeoff.comparison.pretraining_run import PretrainingRun
from bakeoff.comparison.statistics.questions import Interaction
from bakeoff.comparison.statistics.series import Series
from bakeoff.comparison.statistics.time_to_loss import TimeToLoss
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.config import Config
from bakeoff.durable import write_atomically
from bakeoff.json_files import read_json
from bakeoff.optimization.early_stopping import LossUnit
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.scores.label_scores import LabelScore
from bakeoff.tuning.results import TuningResults

SPLITS = ("train", "dev", "test")
"""The splits of a task."""

MARKDOWN, LATEX = "report.md", "tables.tex"
"""The names of the report's answer and tables in Markdown and in LaTeX."""

RESULTS = ("results.json", "results.csv", "report.html", MARKDOWN, LATEX)
"""The names of the files that hold the results."""
FIGURES = "figures"
"""The name of the folder of charts beside them."""

Initialisation = Literal["pretrained", "scratch"]


class FinetuningScore(Config):
    """The scores of one fine-tuning: one recipe, seed, initialisation and task."""

    task: str
    """The task's name."""
    seed: int
    """The seed of the pre-training (or of the random weights) that it starts from."""
    finetune_seed: int
    """Number of the fine-tuning among those nested in the seed, from 0."""
    initialisation: Initialisation
    """The first weights: `pretrained`, or `scratch` for random ones."""
    learning_rate: float
    """The learning rate, chosen on dev where the plan gives several."""
    tried: list[float] = Field(default=[])
    """The learning rates that were tried, the lowest first; empty in results of older versions."""
    dev: dict[str, float]
    """Metrics on dev, by name; shares are fractions."""
    test: dict[str, float]
    """Metrics on test, by name; shares are fractions."""
    predictions: str
    """The file of the test predictions, relative to the comparison's directory."""
    transferred_tensors: int
    """Number of tensors taken from the pre-trained run; 0 from scratch."""
    best_epoch: float | None
    """The epoch that did best on dev, whose weights were tested."""
    epochs: float | None = None
    """The epochs trained until the end, or until early stopping; None in results of older versions."""
    default_epochs: list[int] = Field(default=[])
    """The default numbers of epochs that were raised for `least_steps`."""
    labels: dict[str, LabelScore] = Field(default={})
    """Precision, recall and F1 on test of each class, label or type of spans; empty for tasks without these."""
    cut: dict[str, CutRows] = Field(default={})
    """The rows of train, dev and test of which a part was not read; empty in results of older versions."""
    seconds: float
    """Seconds of training, over all trials of the fine-tuning."""


class CheckpointEntry(Config):
    """A recipe's pre-trainings that ended at a share of the budget, and the scores after them."""

    share: float
    """The share of the budget."""
    steps: int
    """Optimizer steps, with those in which the learning rate falls."""
    runs: list[PretrainingRun]
    """The pre-trainings, one for each seed; time and work are those of all their steps."""
    scores: list[FinetuningScore]
    """The scores of their fine-tunings."""
    measurements: list[MeasurementScore] = Field(default=[])
    """What they were measured to without fine-tuning."""


class RecipeEntry(Config):
    """A recipe with its pre-trainings, its search and all scores of its fine-tunings."""

    label: str
    """The recipe's label in the report."""
    recipe: dict[str, Any]
    """The complete recipe, with the values of its search's best trial."""
    search: TuningResults | None = None
    """The search of the recipe's values; None: the recipe was not searched."""
    starts: dict[int, StartFacts] = Field(default={})
    """The run that each pre-training's first weights come from, by seed; empty: random weights."""
    corpus: CorpusFacts | None = None
    """The corpus of the pre-trainings; None: the comparison's."""
    as_it_is: bool = False
    """Whether the start is compared as it is, without a further training."""
    finetune: dict[str, Any] = Field(default={})
    """The settings of the recipe's fine-tunings that stand in place of the tasks'."""
    parameters: int
    """Number of trainable parameters, shared ones counted once, heads of pre-training included."""
    flops_per_token: float
    """Floating-point operations to train on one token."""
    steps: int
    """Optimizer steps of each pre-training, as the budget allows."""
    runs: list[PretrainingRun]
    """The recipe's pre-trainings, one for each seed; empty for a recipe that is compared as it is."""
    scores: list[FinetuningScore]
    """The scores of the recipe's fine-tunings."""
    checkpoints: list[CheckpointEntry] = Field(default=[])
    """The recipe's pre-trainings that ended before the whole budget was spent, by their share of it."""
    measurements: list[MeasurementScore] = Field(default=[])
    """What the recipe's runs were measured to without fine-tuning."""

    @model_validator(mode="before")
    @classmethod
    def _of_older_comparisons(cls, values: Any) -> Any:
        """Give every seed the start that recipes had in results of older versions."""
        if not isinstance(values, Mapping) or "start" not in values:
            return values
        values = dict(values)
        start = values.pop("start")
        return values if start is None else {**values, "starts": {run["seed"]: start for run in values["runs"]}}

    @property
    def memory(self) -> int | None:
        """Bytes of memory that a pre-training of it takes, the median of its seeds; None: not measured.

        What the process had before is no recipe's: libraries, and what earlier trainings have left. In results of older
        versions it is counted. The first training of a process takes more, for what is loaded once.
        """
        taken = [run.training_memory_bytes for run in self.runs if run.training_memory_bytes is not None]
        whole = [run.peak_memory_bytes for run in self.runs if run.peak_memory_bytes is not None]
        return round(median(taken or whole)) if taken or whole else None

    @property
    def checkpoint(self) -> StartFacts | None:
        """The one start of all seeds, whose luck no seed shows; None: each seed has its own, or random weights."""
        different = {each.weights for each in self.starts.values()}
        return next(iter(self.starts.values())) if len(self.starts) > len(different) else None


class Failure(Config):
    """A recipe that is left out because one of its trainings diverged."""

    recipe: str
    """The recipe's label."""
    seed: int
    """The seed of the training that diverged; 0 for a search."""
    training: str
    """The training that diverged, in words."""
    message: str
    """The error message of the divergence."""


class Baseline(Config):
    """A method without any neural network: what every recipe has to beat."""

    task: str
    """The task's name."""
    kind: Literal["simplest", "learned"]
    """`simplest`: an answer without a model; `learned`: a method that learns without a neural network."""
    name: str
    """The method in words."""
    dev: dict[str, float]
    """Metrics on dev, by name."""
    test: dict[str, float]
    """Metrics on test, by name."""
    chosen: dict[str, Any] = Field(default={})
    """The method's settings that dev chose, by name."""
    labels: dict[str, LabelScore] = Field(default={})
    """Precision, recall and F1 on test of each class, label or type of spans; empty for tasks without these."""
    seconds: float | None = None
    """Median seconds from a batch of texts to their predictions; None: not measured."""
    predictions: str | None = None
    """The file of the test predictions, relative to the comparison's directory; None: they are not kept."""

    @model_validator(mode="before")
    @classmethod
    def _of_older_comparisons(cls, values: Any) -> Any:
        """Add kind and name to the baselines in results of older versions, which knew classification alone."""
        names = {
            "majority": ("simplest", "most frequent class"),
            "tfidf_logistic_regression": ("learned", "TF-IDF with logistic regression"),
        }
        if isinstance(values, Mapping) and "name" not in values and values.get("kind") in [*names]:
            kind, name = names[values["kind"]]
            return {**values, "kind": kind, "name": name}
        return values


class Results(Config):
    """The results of a comparison, as results.json has them."""

    renamed: ClassVar[Mapping[str, str]] = {"floors": "baselines"}

    title: str
    """Heading of the report."""
    created: str
    """Time of writing, ISO 8601."""
    planned_seeds: list[int]
    """The seeds of the plan."""
    finished_seeds: list[int]
    """The seeds that have finished; all other fields are about these alone."""
    finetune_seeds: int
    """Fine-tunings nested in each seed."""
    device: str
    """The device that the plan asked for."""
    budget: BudgetFacts
    """The budget of every pre-training."""
    until_loss: float | None = None
    """The held-out loss at which each pre-training ended, where it was reached; None: none was asked for."""
    until_unit: LossUnit = "nats"
    """The unit of this loss."""
    to_loss: list[TimeToLoss] = Field(default=[])
    """What recipes took to this loss, compared: of each kind of loss, those all of whose seeds reached it."""
    search: SearchPlan | None = None
    """The search of each recipe before its trainings; None: there was none."""
    corpus: CorpusFacts
    """The corpus of the pre-trainings."""
    tasks: list[TaskFacts]
    """The tasks of the fine-tunings."""
    recipes: list[RecipeEntry]
    """The compared recipes, in the plan's order."""
    failures: list[Failure] = Field(default=[])
    """Recipes of the plan that all other fields leave out, because one of their trainings diverged."""
    later: list[str] = Field(default=[])
    """Recipes of the plan that all other fields leave out, because they are trained later."""
    baselines: list[Baseline]
    """Scores of methods without a neural network, which every recipe has to beat."""
    grids: list[GridFacts] = Field(default=[])
    """The grids that recipes are cells of."""
    analyses: list[Analysis]
    """The statistics of the scores, one entry for each task."""
    over_tasks: Analysis | None = None
    """The statistics of the mean score over all tasks in percent or times 100; None: there are fewer than two."""
    averaged: list[str] = Field(default=[])
    """The tasks that the mean score is over: with points, and of a curve over rows the one with the most rows."""
    interactions: list[Interaction] = Field(default=[])
    """How far the differences of every two recipes are other ones on another task."""
    baseline: str | None = None
    """The recipe with which alone the others are compared; None: every two are."""
    looks: list[int] = Field(default=[])
    """The numbers of seeds at which verdicts were seen before more seeds were added."""
    latency: LatencyPlan = LatencyPlan()
    """The texts that latencies are measured on."""
    latencies: list[Latency] = Field(default=[])
    """The latency of each recipe on each task; empty before the last training, and in results of older versions."""
    layers: list[RecipeLayers] = Field(default=[])
    """What the layers of each recipe do; empty before the last training, and in results of older versions."""
    similarities: list[LayerSimilarity] = Field(default=[])
    """How alike the layers of each recipe are to those of the baseline, or of the first recipe; empty likewise."""
    series: list[Series] = Field(default=[])
    """The tasks with several numbers of rows, with verdicts over all of them."""
    machine: dict[str, str]
    """The machine's processor, cores, memory, accelerator and system, by name."""
    versions: dict[str, str]
    """Versions of Python and of the libraries, by name."""

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
