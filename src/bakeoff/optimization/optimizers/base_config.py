"""The common fields of optimizers."""

from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import Field, field_validator, model_validator
from torch import nn
from typing_extensions import override

from bakeoff.config import PartConfig
from bakeoff.optimization.decay_by_passes import DecayByPasses
from bakeoff.optimization.rate_transfer import FollowingRate


class OptimizerBaseConfig(PartConfig):
    """The base of optimizers' configs: the learning rate, and the numbers that are kept in memory.

    An optimizer defines `moments` and `build`. In each step a training sets the rate `lr` of every group of parameters
    to `rate` times the schedule's factor, times the group's `lr_multiple` where it has one.
    """

    kind: str
    """The optimizer's name."""
    lr: Annotated[float, Field(gt=0)] | FollowingRate
    """Learning rate where the schedule's factor is 1, such as at the end of the warm-up; or one that follows the length
    of the training, as `{rate: 0.02, steps: 1000}`, with optimizers for which such a rule was measured."""

    examples: ClassVar = ({"lr": 1e-3},)
    length_exponent: ClassVar[float | None] = None
    """beta in the rule lr = B D^-beta by which the best rate follows the length D of a training (docs/learning.md); 0:
    the best rate does not depend on it; None: no such rule was measured."""

    @model_validator(mode="after")
    def _require_a_rule(self) -> Self:
        if isinstance(self.lr, FollowingRate) and self.length_exponent is None:
            raise ValueError(
                f"lr: no rule is known by which the rate of {self.kind} follows the length of a training; give "
                "a number, such as --set training.optimizer.lr=1e-3"
            )
        return self

    @property
    def rate(self) -> float:
        """The learning rate; for a `FollowingRate` the rate at the length for which it was found."""
        return self.lr.rate if isinstance(self.lr, FollowingRate) else self.lr

    def fitted(self, steps: int, steps_a_pass: float | None = None, before: int = 0) -> Self:
        """The optimizer for a training of so many steps: its rate and its decay are numbers.

        Args:
            steps: the steps of the training.
            steps_a_pass: the steps of a pass over all texts of the weights; None: the training is one pass.
            before: the steps that have trained the first weights; a rate that follows the length follows that of all.
        """
        if not isinstance(self.lr, FollowingRate):
            return self
        return self.model_copy(update={"lr": self.lr.at(before + steps, self.length_exponent)})

    @property
    def moments(self) -> int:
        """Numbers that the optimizer keeps for each parameter; those of rows and columns do not count."""
        raise NotImplementedError

    @property
    def temporaries(self) -> int:
        """Numbers for each parameter that a step needs for a moment, beside those that it keeps."""
        return 0

    def kept(self, module: nn.Module) -> int:
        """Numbers that the optimizer keeps for a module."""
        return self.moments * _count(module)

    def needed(self, module: nn.Module) -> int:
        """Numbers that a step needs for a moment, beside those that it keeps."""
        return self.temporaries * _count(module)

    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        """The optimizer of a module's parameters.

        Args:
            module: the module that is trained.
            precision: precision of the training's products, used by optimizers that multiply matrices.
        """
        raise NotImplementedError


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


WeightDecay = Annotated[float, Field(ge=0)] | DecayByPasses


class DecayConfig(OptimizerBaseConfig):
    """An optimizer with weight decay."""

    weight_decay: WeightDecay = Field(default=0.0)
    """Weight decay; norms and biases have none."""

    decays_by_passes: ClassVar[bool] = False
    """Whether the decay may follow the text: it is decoupled, and updates are as large as the rate says."""

    @field_validator("weight_decay")
    @classmethod
    def _decoupled_by_passes(cls, value: WeightDecay) -> WeightDecay:
        if isinstance(value, DecayByPasses) and not cls.decays_by_passes:
            raise ValueError(
                "this optimizer's does not follow the passes over a text; give a number, such as "
                "--set training.optimizer.weight_decay=0.01, or take adamw or muon"
            )
        return value

    @property
    def decay(self) -> float:
        """The decay; 0 for one that follows a text, until the optimizer is `fitted` to it."""
        return 0.0 if isinstance(self.weight_decay, DecayByPasses) else self.weight_decay

    @override
    def fitted(self, steps: int, steps_a_pass: float | None = None, before: int = 0) -> Self:
        fitted = super().fitted(steps, steps_a_pass, before)
        if not isinstance(fitted.weight_decay, DecayByPasses):
            return fitted
        decay = fitted.weight_decay.at(fitted.rate, steps if steps_a_pass is None else steps_a_pass)
        return fitted.model_copy(update={"weight_decay": decay})

    def groups(self, module: nn.Module) -> list[dict[str, Any]]:
        """Groups with and without decay: norms and biases are vectors, all others have two dimensions or more.

        XLNet's biases of the scores have three, and are decayed, as in its code.
        """
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        return [
            {"params": [p for p in trained if p.dim() >= 2], "weight_decay": self.decay},
            {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
        ]


DecayRate = Annotated[float, Field(ge=0, lt=1)]
"""Share of a moment that is left after a step."""


class MomentsConfig(DecayConfig):
    """The common fields of AdamW and LAMB."""

    weight_decay: WeightDecay = Field(default=0.01)
    """Decoupled weight decay; norms and biases have none. For adamw also one that follows the text: `{passes: 2}`."""
    betas: tuple[DecayRate, DecayRate] = (0.9, 0.999)
    """Decay rates of the two moments."""
    epsilon: float = Field(default=1e-6, gt=0)
    """Added to the root of the second moment."""
    bias_correction: bool = True
    """Divide the moments by 1 - beta^t, because they begin at zero (Kingma and Ba 2015, algorithm 1); the code of BERT,
    ALBERT and XLNet does not."""

    @property
    def moments(self) -> int:
        """Two: the mean of the gradients and the mean of their squares."""
        return 2
