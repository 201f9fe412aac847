"""How a model is fine-tuned."""

from typing import Any, Literal

from pydantic import Field, field_validator

from bakeoff.config import Config


class FinetuneConfig(Config):
    """How a model and its head are trained."""

    learning_rate: list[float] = Field(default=[])
    """Learning rate at the end of the warm-up; of several each is tried and dev decides. Absent: 5e-5 * 768 / width."""
    batch: int = Field(default=32, gt=0)
    """Rows of a batch."""
    epochs: int = Field(default=10, gt=0)
    """The most passes over train."""
    least_steps: int = Field(default=300, ge=0)
    """With few rows there are more epochs, so that there are at least this many steps; 0 for never."""
    warmup: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the learning rate rises linearly; behind them it falls linearly to zero."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled weight decay; norms and biases have none."""
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient, over all parameters."""
    evaluations: int = Field(default=20, gt=0)
    """How often dev is looked at, evenly spread over all steps."""
    patience: int | None = Field(default=6, gt=0)
    """Stop after this many evaluations without a better one; null: never."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of what the head reads."""
    model_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Replaces the model's dropout, and that of each of its parts that has one of its own other than 0."""
    unshare: bool = False
    """Layers that share parts get copies of their own before the training: the same function, free to differ."""
    pooling: Literal["auto", "cls", "mean", "max", "last"] = "auto"
    """How a row becomes one vector: its first position through a tanh layer, the mean or maximum of all, or its last
    position; auto: cls where the recipe has an objective of sentence pairs, last for causal models, mean otherwise."""
    length: int | None = Field(default=None, gt=0)
    """Longer rows are cut to so many tokens; absent: the recipe's input length."""

    @field_validator("learning_rate", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return value if isinstance(value, list | tuple) else [] if value is None else [value]

    @field_validator("learning_rate")
    @classmethod
    def _positive(cls, value: list[float]) -> list[float]:
        if any(not rate > 0 for rate in value):
            raise ValueError(f"{value} holds a learning rate that is not positive")
        return value
