"""The training section of a recipe: batch, optimizer, schedule, budget and what else decides how a model is trained."""

from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from bakeoff.batching.token_batches import TokenBatch
from bakeoff.config import Config
from bakeoff.objectives.distillation import DistillationConfig
from bakeoff.optimization.averages import AveragedConfig
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.course import evenly
from bakeoff.optimization.curriculum import StageConfig
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.optimizers import OptimizerConfig
from bakeoff.optimization.save_points import SavePoints
from bakeoff.optimization.schedules import ScheduleConfig


class TokenVectorsConfig(Config):
    """First vectors of the table of tokens by what stands beside each token in the training text, in place of chance.

    `bakeoff.corpus.neighbours` has the equations. Tokens that the text does not have begin by chance.
    """

    window: int = Field(default=2, ge=1, le=10)
    """The farthest distance of neighbours, in tokens; time and memory grow with it."""
    scale: float = Field(default=0.15, gt=0, le=100)
    """Root of the mean square of the vectors' numbers."""


class TrainingConfig(AveragedConfig):
    """How the model is trained."""

    batch: PositiveInt | TokenBatch
    """Size of a batch in rows; or in tokens, where rows have different lengths: `{tokens: 25000}`."""
    first_batch: float = Field(default=1.0, gt=0, le=1)
    """The share of `batch` that the first step has; from there batches grow evenly to the whole at the end (GPT-BERT:
    a quarter, Charpentier and Samuel 2024, arXiv:2410.24159). 1: they have one size."""
    micro_batch: PositiveInt | TokenBatch | Literal["auto"] | None = None
    """Rows, or tokens, that go through the model at once; gradients of a batch's micro-batches are added. auto: as many
    as fit the device's memory by count, and half as many from the step on that runs out of it; the run's recipe says
    how many. Absent: the whole batch."""
    optimizer: OptimizerConfig
    """The optimizer."""
    schedule: ScheduleConfig
    """The learning rate's course."""
    decay_schedule: ScheduleConfig | None = None
    """The course of the weight decay, as a factor of the optimizer's `weight_decay`, in the form of `schedule`: such as
    `{kind: points, points: [[0.13, 1], [0.53, 0.1], [1, 1.2]]}`; null: it stays. Decoupled decay follows the learning
    rate, too."""
    budget: Budget
    """How long to train; `--budget` replaces it."""
    curriculum: list[StageConfig] = Field(default=[])
    """Stages before the recipe's own settings, with shorter rows, larger batches or other weights of objectives."""
    clip: float | None = Field(default=1.0, gt=0)
    """Largest norm of the gradient, over all parameters; null for no clipping."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto is bfloat16 autocast where the device is fast at it, float32 elsewhere."""
    compile: Literal["auto", "graphs"] | bool = "auto"
    """Compile the layers; auto does so where the training is long enough to win the compiler's time back. graphs: also
    replay them as CUDA graphs, for small models on a GPU, whose rows all have one length."""
    activation_checkpointing: bool = False
    """Keep only the input of each layer from the forward pass, and apply the layer again in the backward pass: far less
    memory for a third more operations, and the same results (Chen et al. 2016, arXiv:1604.06174)."""
    validations: int = Field(default=20, ge=1)
    """Measurements of the held-out loss, evenly spread, 25 steps apart at least; one more precedes the training."""
    validation_examples: int = Field(default=256, gt=0)
    """Rows of held-out text on which the loss is measured, always the same with the same masks."""
    average_last: int = Field(default=0, ge=0, le=100)
    """Write the mean of the weights of so many snapshots, the last of the training, as a run of its own beside the run
    (Vaswani et al. 2017, section 6.1); they are a hundredth of the steps apart. 0: do not; `--average-last` replaces
    it."""
    checkpoint_minutes: float = Field(default=10.0, gt=0)
    """Minutes between checkpoints; the first one comes after one minute, if this is longer."""

    save_at: SavePoints | None = None
    """Points after which the weights are kept as runs in the run's folder `saved`, such as `{words: [1M..10M:1M]}`;
    null: none. `--save-at` replaces it."""
    early_stopping: EarlyStopping | None = None
    """End the training where the held-out loss has stopped falling, such as `{patience: 3}`; null: train the whole
    budget. `--patience` replaces it."""

    token_vectors: TokenVectorsConfig | None = None
    """What the table of tokens begins with, such as `{window: 2, scale: 0.15}`: vectors by what stands beside each
    token in the text; null: chance. Not where the first weights come from a run."""

    distillation: DistillationConfig | None = None
    """Runs whose probabilities are learned beside the labels, such as `{teachers: [runs/a, runs/b]}`; null: none.
    `bakeoff distill` sets it."""

    @field_validator("micro_batch", mode="before")
    @classmethod
    def _known_size(cls, value: Any) -> Any:
        """Say in one line what a size may be."""
        number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not (value is None or value == "auto" or number or isinstance(value, dict | TokenBatch)):
            raise ValueError("give a number of rows above 0, {tokens: N}, or auto")
        return value

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        in_rows = isinstance(self.micro_batch, int)
        if self.micro_batch not in (None, "auto") and in_rows != isinstance(self.batch, int):
            raise ValueError("micro_batch: give it in rows where 'batch' is, and in tokens where 'batch' is")
        if self.average is not None and self.average_last:
            raise ValueError("average_last: average is a mean of the weights already; set it to 0, or average to null")
        steps = self.budget.steps
        if self.average is not None and (why := self.average.refusal(self.schedule.rise_share(steps), steps)):
            raise ValueError(why)
        if self.decay_schedule is not None and not getattr(self.optimizer, "weight_decay", 0.0):
            raise ValueError(
                "decay_schedule: the optimizer has no weight decay; set optimizer.weight_decay, or leave it out"
            )
        if self.early_stopping is not None and self.average_last:
            raise ValueError(
                "average_last: averages the last weights of the whole budget, which early_stopping may not reach; set "
                "it to 0, or early_stopping to null"
            )
        return self

    @property
    def schedules(self) -> dict[str, ScheduleConfig]:
        """The schedules by their keys: of the learning rate, and of the weight decay where it has one."""
        given = {"schedule": self.schedule, "decay_schedule": self.decay_schedule}
        return {key: schedule for key, schedule in given.items() if schedule is not None}

    @property
    def at_once(self) -> int | TokenBatch:
        """The size of what goes through the model at once; the whole batch where nothing, or auto, says otherwise."""
        return self.batch if self.micro_batch is None or self.micro_batch == "auto" else self.micro_batch

    def rows_at_once(self, length: int) -> int:
        """Rows of `length` tokens that go through the model at once."""
        size = self.at_once
        return size if isinstance(size, int) else max(1, size.tokens // length)

    def batch_share(self, progress: float) -> float:
        """The size of a step's batch as a share of `batch`, where the share `progress` of the training is done."""
        return evenly(self.first_batch, 1.0, progress)
