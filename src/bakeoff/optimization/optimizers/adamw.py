"""AdamW: torch's, and the one of BERT's code."""

from typing import ClassVar, Literal

import torch
from torch import nn
from typing_extensions import override

from bakeoff.optimization.optimizers.base_config import MomentsConfig
from bakeoff.optimization.optimizers.moments import Moments, UncorrectedAdamW


class AdamWConfig(MomentsConfig):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    With `weight_decay: 0` it is Adam itself (Kingma and Ba 2015, arXiv:1412.6980); the Transformer's is
    `{kind: adamw, weight_decay: 0, betas: [0.9, 0.98], epsilon: 1.0e-9}`.
    """

    kind: Literal["adamw"] = "adamw"
    """The optimizer's name."""

    decays_by_passes: ClassVar[bool] = True

    @property
    def temporaries(self) -> int:
        """Zero for the fused optimizer."""
        return 0 if self.bias_correction else Moments.TEMPORARIES

    @override
    def needed(self, module: nn.Module) -> int:
        on_cpu = next(module.parameters()).device.type == "cpu"
        return super().needed(module) if on_cpu else 0  # where it is always fused

    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        """The optimizer of a module's parameters, fused into one pass; without bias correction on GPUs alone."""
        if not self.bias_correction:
            return UncorrectedAdamW(self.groups(module), self.rate, self.betas, self.epsilon)
        return torch.optim.AdamW(self.groups(module), lr=self.rate, betas=self.betas, eps=self.epsilon, fused=True)
