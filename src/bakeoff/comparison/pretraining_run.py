"""A pre-training of a comparison as its results have it: its size, its cost and its curve of losses."""

from pydantic import Field

from bakeoff.config import Config

SPENT = (
    "steps",
    "tokens",
    "seconds",
    "work_seconds",
    "flops",
    "tokens_per_second",
    "peak_memory_bytes",
    "training_memory_bytes",
)
"""The fields of `PretrainingRun` that a run's summary has as well."""


class CurvePoint(Config):
    """One validation during a pre-training."""

    step: int
    """Optimizer steps done."""
    tokens: int
    """Tokens seen."""
    seconds: float
    """Seconds of training, without validation."""
    flops: float
    """Floating-point operations of the training so far."""
    losses: dict[str, float]
    """Validation loss by objective, in nats a target."""
    bits_per_byte: dict[str, float] = Field(default={})
    """Validation loss in bits a byte of text, by objective; only of objectives that predict every token."""
    accuracy: dict[str, float] = Field(default={})
    """Fraction of right predictions, by objective."""


class PretrainingRun(Config):
    """A finished pre-training of one recipe and seed: its size, its cost and its curve of losses."""

    seed: int
    """The seed of the comparison, one of the plan's."""
    path: str
    """The run's directory, relative to the comparison's."""
    steps: int
    """Optimizer steps done."""
    tokens: int
    """Tokens seen."""
    seconds: float
    """Seconds of training by the clock, without validation."""
    work_seconds: float | None = None
    """Seconds of work, on a CPU the processor time of all threads; None: not measured."""
    flops: float
    """Floating-point operations of the whole training."""
    tokens_per_second: float
    """Tokens a second, over the whole run."""
    peak_memory_bytes: int | None
    """Peak memory in bytes; None: it could not be measured."""
    training_memory_bytes: int | None = None
    """The part of it that the training took, beyond what was in use before it; None: it could not be measured."""
    unigram_entropy: float | None
    """Loss of a model that knows token frequencies alone, in nats; a run near it has learned little else."""
    validation_loss: float | None = None
    """The last validation loss, of all objectives together; None in results of older versions."""
    curve: list[CurvePoint]
    """The run's validations in order."""
