"""Learning-rate schedules: a factor of the learning rate, as a pure function of the step and the held-out losses."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.config import PartConfig
from bakeoff.optimization.course import evenly
from bakeoff.registry import Registry


class ScheduleBaseConfig(PartConfig):
    """The base of schedules: a linear rise from zero at the start, and after it 1 unless a schedule says otherwise.

    A schedule defines `decay`, or `factor` where the decay alone does not say it.
    """

    kind: str
    """The schedule's name."""

    warmup: float = Field(default=0.0, ge=0)
    """Steps of linear rise; below 1 a share of all steps. Under another budget than the recipe's the share stays."""

    def fitted(self, steps: int, planned_steps: int | None) -> Self:
        """The schedule for a training of `steps`, where the recipe's budget had `planned_steps`."""
        share = self.warmup
        if self.warmup >= 1:
            share = self.warmup / (planned_steps or steps)
        return self.model_copy(update={"warmup": float(round(min(1.0, share) * steps))})

    def rise_share(self, steps: int | None) -> float:
        """The share of the steps in which the rate rises; 0 where the warm-up is in steps and these are not known."""
        if self.warmup < 1:
            return self.warmup
        return min(1.0, self.warmup / steps) if steps else 0.0

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """Factor of the learning rate in one step, the warm-up being in steps.

        Args:
            step: counted from 0.
            steps: steps of the whole training.
            losses: the held-out losses that have been measured so far, the one before the training left out.
        """
        if step < self.warmup:
            return (step + 1) / self.warmup
        return self.decay((step - self.warmup) / max(1.0, steps - self.warmup))

    def decay(self, progress: float) -> float:
        """Factor at the share `progress` of the steps after the warm-up."""
        return 1.0


class ConstantConfig(ScheduleBaseConfig):
    """A constant learning rate after the warm-up."""

    kind: Literal["constant"] = "constant"
    """The schedule's name."""


class LinearConfig(ScheduleBaseConfig):
    """Linear decay to zero (BERT, ALBERT)."""

    kind: Literal["linear"] = "linear"
    """The schedule's name."""
    decay_from_start: bool = False
    """The decay is counted from the first step, warm-up included, so that the rate falls from 1 to 1 - warmup / steps
    where the warm-up ends, as in the code of BERT and ALBERT."""

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """The factor of every schedule; with `decay_from_start`, 1 - step / steps after the warm-up."""
        if self.decay_from_start and step >= self.warmup:
            return self.decay(step / steps)
        return super().factor(step, steps, losses)

    def decay(self, progress: float) -> float:
        """The factor at a share of the decay: 1 - progress, a line to zero."""
        return max(0.0, 1 - progress)


class TrapezoidConfig(ScheduleBaseConfig):
    """The full rate, then a fall to zero at the end: warm-up, stable, decay (Hu et al. 2024, arXiv:2404.06395).

    With the same warm-up, everything before the cooldown is the same for every budget.
    """

    kind: Literal["trapezoid"] = "trapezoid"
    """The schedule's name."""
    cooldown: float = Field(default=0.2, gt=0, le=1)
    """Share of the steps after the warm-up in which the rate falls (Haegele et al. 2024, arXiv:2405.18392)."""
    shape: Literal["linear", "root"] = "linear"
    """The factor when a share p of the cooldown is done: 1 - p, or 1 - sqrt(p)."""

    def decay(self, progress: float) -> float:
        """1, and 1 - p or 1 - sqrt(p) within the cooldown."""
        done = min(1.0, max(0.0, 1 - (1 - progress) / self.cooldown))
        return 1 - (done if self.shape == "linear" else math.sqrt(done))


class CosineConfig(ScheduleBaseConfig):
    """Half a cosine wave down (GPT; Loshchilov and Hutter 2017, arXiv:1608.03983)."""

    kind: Literal["cosine"] = "cosine"
    """The schedule's name."""
    final: float = Field(default=0.0, ge=0, le=1)
    """The factor at the end."""
    cooldown: float = Field(default=0.0, ge=0, lt=1)
    """Share of all steps, the last ones, in which the factor falls on a line from `final` to zero (GPT-BERT's code)."""

    @model_validator(mode="after")
    def _something_to_fall_from(self) -> Self:
        if self.cooldown and not self.final:
            raise ValueError("cooldown: it is a fall from `final`, which is 0; set that, or leave cooldown out")
        return self

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """The factor of every schedule; final * (steps - step) / n in the last n steps, the cooldown."""
        last = round(self.cooldown * steps)
        if last and step >= max(self.warmup, steps - last):
            return self.final * (steps - step) / last
        return super().factor(step, steps, losses)

    def decay(self, progress: float) -> float:
        """The wave: final + (1 - final) (1 + cos(pi progress)) / 2."""
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * min(1.0, progress))) / 2


class InverseSqrtConfig(ScheduleBaseConfig):
    """Decay with the root of the step: min(s / w, sqrt(w / s)) at step s = 1, 2, ... with a warm-up of w steps.

    The optimizer's `lr` is that of the peak, at s = w. Vaswani et al. 2017 (arXiv:1706.03762, section 5.3) write
    D^-0.5 min(s^-0.5, s w^-1.5), whose peak is (D w)^-0.5; T5 writes 1 / sqrt(max(s, w)), whose peak is w^-0.5.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    """The schedule's name."""
    rise: bool = True
    """The learning rate rises during the warm-up; false: it is that of the peak from the start (T5)."""

    @override
    def rise_share(self, steps: int | None) -> float:
        return super().rise_share(steps) if self.rise else 0.0

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """min(s / w, sqrt(w / s)), or min(1, sqrt(w / s)) without the rise."""
        warmup = max(1.0, self.warmup)
        fall = math.sqrt(warmup / (step + 1))
        return min((step + 1) / warmup if self.rise else 1.0, fall)


class PointsConfig(ScheduleBaseConfig):
    """Lines between points of the training: hold, lower, raise.

    Before the first point the factor is that of the first, after the last one that of the last.
    """

    kind: Literal["points"] = "points"
    """The schedule's name."""
    points: list[tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0)]]] = Field(
        default=[(0.5, 1.0), (1.0, 0.0)], min_length=1
    )
    """Pairs of a share of all steps and the factor there; shares rise."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        shares = [share for share, _ in self.points]
        if shares != sorted(set(shares)):
            raise ValueError(f"points: the shares {', '.join(f'{share:g}' for share in shares)} do not rise")
        return self

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """The factor of every schedule in the warm-up, then that of the points at step / steps."""
        if step < self.warmup:
            return super().factor(step, steps, losses) * self._at(self.warmup / max(1, steps))
        return self._at(step / max(1, steps))

    def _at(self, progress: float) -> float:
        before = [point for point in self.points if point[0] <= progress]
        after = [point for point in self.points if point[0] > progress]
        if not before or not after:
            return after[0][1] if after else before[-1][1]
        (first, low), (last, high) = before[-1], after[0]
        return evenly(low, high, (progress - first) / (last - first))


class PlateauConfig(ScheduleBaseConfig):
    """A rate that shrinks whenever the held-out loss has stopped falling (gated convolutions, TCN, Pham et al. 2016).

    The rule of torch's ReduceLROnPlateau, which takes a loss whenever the training measures one
    (`training.validations` times in all, so the rule is the same under any budget). How often the rate has fallen is
    worked out anew from all losses, so there is nothing to save.
    """

    kind: Literal["plateau"] = "plateau"
    """The schedule's name."""
    shrink: float = Field(default=0.5, gt=0, lt=1)
    """Factor of the learning rate at each fall."""
    patience: int = Field(default=0, ge=0)
    """Number of losses in a row no better than the best that are let pass; at one more the rate falls."""
    threshold: float = Field(default=1e-4, ge=0, lt=1)
    """A loss is better when it is lower than the best by more than this share of it."""

    def factor(self, step: int, steps: int, losses: Sequence[float] = ()) -> float:
        """The warm-up's factor times shrink^n, where patience has run out n times."""
        best, worse, reductions = math.inf, 0, 0
        for loss in losses:
            worse += 1
            if loss < best * (1 - self.threshold):
                best, worse = loss, 0
            elif worse > self.patience:
                reductions, worse = reductions + 1, 0
        return super().factor(step, steps) * self.shrink**reductions


SCHEDULES = Registry(
    "schedule",
    ScheduleBaseConfig,
    ConstantConfig,
    LinearConfig,
    TrapezoidConfig,
    CosineConfig,
    InverseSqrtConfig,
    PlateauConfig,
    PointsConfig,
)
"""The config of every schedule by its name."""

ScheduleConfig = Annotated[ScheduleBaseConfig, SCHEDULES]
