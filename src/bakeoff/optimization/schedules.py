"""Learning-rate schedules: a factor of the learning rate, as a pure function of the step."""

import math
from typing import Annotated, Literal

from pydantic import Field

from bakeoff.config import Config


class WarmupConfig(Config):
    """A linear rise from zero at the start."""

    warmup: float = Field(default=0.0, ge=0)
    """Steps of linear rise; below 1 a share of all steps. Under another budget than the recipe's the share stays."""

    def fitted(self, steps: int, planned_steps: int | None) -> "WarmupConfig":
        """The schedule for a training of `steps`, where the recipe's own budget had `planned_steps`."""
        share = self.warmup
        if self.warmup >= 1:
            share = self.warmup / (planned_steps or steps)
        return self.model_copy(update={"warmup": float(round(min(1.0, share) * steps))})

    def factor(self, step: int, steps: int) -> float:
        """Factor of the learning rate at a step counted from 0 of `steps`, the warm-up being in steps."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        return self.decay((step - self.warmup) / max(1.0, steps - self.warmup))

    def decay(self, progress: float) -> float:
        """Factor when that share of the steps behind the warm-up is done."""
        raise NotImplementedError


class LinearConfig(WarmupConfig):
    """Linear decay to zero (BERT, ALBERT)."""

    kind: Literal["linear"] = "linear"
    """The schedule's name."""

    def decay(self, progress: float) -> float:
        """1 - progress."""
        return max(0.0, 1 - progress)


class CosineConfig(WarmupConfig):
    """Half a cosine wave down (GPT; Loshchilov and Hutter 2017, arXiv:1608.03983)."""

    kind: Literal["cosine"] = "cosine"
    """The schedule's name."""
    final: float = Field(default=0.0, ge=0, le=1)
    """The factor at the end."""

    def decay(self, progress: float) -> float:
        """The wave: final + (1 - final) (1 + cos(pi progress)) / 2."""
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * min(1.0, progress))) / 2


ScheduleConfig = Annotated[LinearConfig | CosineConfig, Field(discriminator="kind")]
