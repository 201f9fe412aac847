"""The facts that a comparison rests on: the runs that recipes started from, the tasks, the corpus, the budget."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from bakeoff.config import Config


class StartFacts(Config):
    """The run that a recipe's first weights come from."""

    source: str
    """The source as the plan names it: a run, a folder in the form of transformers, or a name on the Hub."""
    run: str
    """The run's directory; an imported model is a run inside the comparison's directory."""
    origin: str | None
    """The origin of the run's first weights, in words; None: they were random."""
    steps: int
    """Steps of the run's training; 0 for an imported model, whose training is unknown."""
    trained: int = 0
    """Steps that have trained the run's weights, those of the runs that it came from among them."""
    weights: str
    """Checksum of the run's weights."""
    tensors: int
    """Number of tensors that the recipe's model took from the run."""
    of: int
    """Number of tensors that the recipe's model has."""
    fresh: list[str]
    """The parts of the model that start from random weights."""
    unused: list[str] = Field(default=[])
    """Heads and tensors of the run that the model does not have."""
    grow: int | None = None
    """Number of layers that the run's, which are fewer, have grown to; None: as many."""
    grow_by: Literal["repeat", "interleave"] = "repeat"
    """Order of the copied layers."""

    def __str__(self) -> str:
        """The start in words, such as `runs/bert (12,000 steps): 30 of 30 tensors`."""
        trained = f"{self.steps:,} steps" if self.steps else "trained elsewhere"
        parts = f"; fresh: {', '.join(self.fresh)}" if self.fresh else ""
        parts += f"; not taken: {', '.join(self.unused)}" if self.unused else ""
        grown = f", grown to {self.grow} layers by {self.grow_by}" if self.grow else ""
        return f"{self.source} ({trained}){grown}: {self.tensors} of {self.of} tensors{parts}"


class TaskFacts(Config):
    """A task as the report describes it: its metric, its rows and its files."""

    name: str
    """The task's name in the plan."""
    kind: str = "classification"
    """The kind of the task, such as classification."""
    metric: str
    """The metric by which epochs are chosen and recipes ranked."""
    metric_title: str
    """The metric in words."""
    unit: Literal["%", "× 100", ""]
    """The unit in which the metric is shown: percent; times 100; or empty, for a scale of its own."""
    lower_is_better: bool = False
    """Whether a lower value of the metric is better."""
    lowest: float | None = None
    """The lowest value of the metric; None in results of older versions."""
    classes: int
    """Number of classes or tags; 0: the task has none."""
    rows: dict[str, int]
    """Number of rows of train (as used), dev and test."""
    clusters: int | None = None
    """Number of clusters of test rows that belong together; None: every row is one of its own."""
    files: dict[str, str | None]
    """Files of train, dev and test; None: the split is held out of train."""
    notes: list[str] = Field(default=[])
    """Notes that a reader of the task's numbers must know, in sentences."""

    @property
    def reach(self) -> float | None:
        """The distance of the metric's highest from its lowest value; None: it has no such bounds, as an error."""
        return None if not self.unit or self.lowest is None else 1 - self.lowest

    @model_validator(mode="before")
    @classmethod
    def _of_older_comparisons(cls, values: Any) -> Any:
        """Add title and unit of the metric to results of older versions, which knew classification alone."""
        titles = {"accuracy": "accuracy", "macro_f1": "macro F1", "matthews": "Matthews correlation"}
        if isinstance(values, Mapping) and "unit" not in values and values.get("metric") in [*titles]:
            unit = "× 100" if values["metric"] == "matthews" else "%"
            return {**values, "metric_title": titles[values["metric"]], "unit": unit}
        return values


class MeasurementScore(Config):
    """What the run of a recipe and a seed was measured to, without fine-tuning."""

    measure: str
    """The measure's title."""
    seed: int
    """The seed of the pre-training."""
    scores: dict[str, float]
    """All metrics; of held-out text by objective: `bits_per_byte:clm`."""
    facts: dict[str, Any]
    """What a reader of the scores has to know beside them, such as how sentences were read."""
    rows: str
    """The file of what each row contributes, relative to the comparison's directory."""
    seconds: float
    """Seconds of the measurement."""


class SameAnswer(Config):
    """A fine-tuned model that gives one answer to all rows of test, though their labels differ."""

    recipe: str
    """The recipe's label."""
    seed: int
    """The seed of the comparison."""
    initialisation: Literal["pretrained", "scratch"]
    """The first weights: `pretrained`, or `scratch` for random ones."""
    answer: str
    """The answer, as in predictions.jsonl."""


class CorpusFacts(Config):
    """The corpus of all pre-trainings: where it is, its size and its tokenizer."""

    path: str
    """The corpus's directory."""
    fingerprint: str
    """Checksum of the corpus's content."""
    tokenizer: str
    """The corpus's tokenizer in words."""
    tokenizer_config: dict[str, Any] | None = None
    """The tokenizer's config, in the form of recipes; None in results of older versions."""
    tokens: int | None = None
    """Number of tokens to train on."""
    words_per_token: float | None = None
    """Number of words to train on, for each token; None in results of older versions."""
    documents: int | None = None
    """Number of documents to train on."""
    unigram_entropy: float | None = None
    """Loss of a model that knows token frequencies alone, in nats a token."""
    trigram_bits_per_byte: float | None = None
    """Held-out bits a byte of a model that counts three tokens at a time; None: no recipe predicts every token."""
    held_out: str | None = None
    """What tells the held-out text from others, whatever the tokenizer; None in results of older versions."""


class BudgetFacts(Config):
    """The budget of every pre-training, and the steps that follow from a budget in minutes."""

    text: str
    """The budget as the plan gives it; 0: every recipe has one of its own."""
    own: dict[str, str] = Field(default={})
    """The budgets of recipes that have another one, by label; 0: a recipe that is compared as it is."""
    steps: dict[str, int] = Field(default={})
    """The steps that a budget in minutes became, by recipe."""
    seconds_per_step: dict[str, float] = Field(default={})
    """Seconds of a step on an idle machine, by recipe; for a budget in minutes alone."""
    work_seconds_per_step: dict[str, float] = Field(default={})
    """Work of a step, on a CPU in processor time of all threads, by recipe; for a budget in minutes alone."""
    corrected: list[str] = Field(default=[])
    """Recipes whose steps were corrected by what the first tenth of their first training took."""
    threads: int | None = None
    """Number of threads of every training, which decides the last bits of a result; None: as many as torch had."""

    def of(self, label: str) -> str:
        """The budget of a recipe as the plan gives it."""
        return self.own.get(label, self.text)
