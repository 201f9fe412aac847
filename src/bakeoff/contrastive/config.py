"""The settings with which a run is taught vectors; without torch, for the command line."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from bakeoff.optimization.averages import AveragedConfig
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.optimization.schedules import LinearConfig, ScheduleBaseConfig, ScheduleConfig
from bakeoff.tasks.pooling import Pooling


class ContrastConfig(AveragedConfig):
    """The settings of the training of vectors by two views of each text."""

    pooling: Pooling | None = None
    """How token vectors become one vector, as for `embed`; the run that is written says it, and `embed` follows; None:
    mean."""
    layers: tuple[int, ...] = (-1,)
    """The layers whose states are pooled, averaged if several: `[0, -1]` is the input of the first layer and the output
    of the last; `0,-1` says the same. sentence-transformers reads the last alone."""
    views: Literal["crops", "whole"] = "crops"
    """What the two views of a text are: two crops of it, each of another place and length (Izacard et al. 2022,
    Contriever, arXiv:2112.09118, section 3.1), or twice the whole text (SimCSE), which deletion and dropout alone make
    unlike."""
    crop: tuple[float, float] = (0.2, 0.6)
    """The least and the largest share of the text's tokens that a crop has."""
    span: int = Field(default=128, ge=8)
    """The most tokens of a text, at a place that is drawn anew each time, of which both crops are taken."""
    deletion: float = Field(default=0.0, ge=0, lt=1)
    """The share of the tokens of a view that are left out, at random."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the model while it learns, and of each part of it whose own dropout is not 0; None: the run's."""
    rare: float = Field(default=1e-3, ge=0)
    """How much more rare tokens count in the mean: a token that is a share p of the texts has the weight a / (a + p)
    (Arora et al. 2017, A simple but tough-to-beat baseline for sentence embeddings, equation 5), with a this number; 0:
    all tokens count alike. For the pooling mean."""
    whiten: bool = True
    """Whether a linear layer after the pooling, which the run gets at the end, whitens the vectors of the texts:
    different directions vary alike and are not correlated (Su et al. 2021, arXiv:2103.15316). Left out where there are
    not twice as many texts as a vector has numbers."""
    temperature: float = Field(default=0.05, gt=0)
    """What cosines are divided by in the loss."""
    batch: int = Field(default=64, ge=2)
    """Texts of a batch, each of which is told from the others."""
    micro_batch: int | None = Field(default=None, gt=0)
    """Texts that go through the model at once; the loss stays that of the whole batch, and the forward pass is computed
    twice. None: the whole batch."""
    budget: Budget = Budget(steps=1000)
    """The length of the training."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Learning rate at the end of the warm-up; None: 1e-3 * 128 / width."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the learning rate rises linearly."""
    schedule: ScheduleConfig = LinearConfig()
    """The learning rate after the warm-up: any schedule of recipes, without its `warmup`, which stands beside it."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay; norms and biases have none."""
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient, over all parameters."""
    evaluations: int = Field(default=10, gt=0)
    """The number of measurements on held-out texts, beside the one before the first step."""
    length: int | None = Field(default=None, gt=0)
    """The most tokens of a row with a view; None: as in pre-training."""

    @field_validator("layers", "crop", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """Numbers between commas, as `embed --layers` takes them, and one alone."""
        return value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        low, high = self.crop
        if not 0 < low <= high <= 1:
            raise ValueError(f"crop: give two shares of a text, 0 < least <= largest <= 1, not {low:g} and {high:g}")
        return self

    def optimizer_at(self, learning_rate: float) -> AdamWConfig:
        """The optimizer with a learning rate."""
        return AdamWConfig(lr=learning_rate, weight_decay=self.weight_decay)

    def schedule_of(self, steps: int) -> ScheduleBaseConfig:
        """The schedule of a training of so many steps."""
        return self.schedule.model_copy(update={"warmup": self.warmup}).fitted(steps, None)
