"""The early end of a training, and the best weights that it keeps until then."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor, nn

from bakeoff.display.wording import counted
from bakeoff.distributed.shards import divided, load_whole, loaded_like
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.stored_tensors import StoredTensors

BEST = "best"
"""The name, before `.safetensors`, of a checkpoint's file with the best weights so far."""


def _kept(tensor: Tensor) -> Tensor:
    """A copy of a tensor on the CPU; of one that is divided among processes this one's part, where it is."""
    return tensor.clone() if divided(tensor) else tensor.cpu().clone()


class EarlyStop:
    """The held-out losses of a training, and what early stopping makes of them.

    Args:
        config: `training.early_stopping`; None: the training goes to the end of its budget.

    Attributes:
        losses: the held-out losses so far, the one before the first step left out.
        validations: the lines of metrics with these losses.
        best: the weights of the best loss; None: there is no loss yet, or they are not kept.
    """

    def __init__(self, config: EarlyStopping | None) -> None:
        self.config = config
        self.losses: list[float] = []
        self.validations: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] | None = None

    @property
    def over(self) -> bool:
        """Whether the training ends here, whatever is left of its budget."""
        return self.config is not None and self.config.stops(self.losses, self._measured)

    @property
    def _measured(self) -> list[float]:
        """The held-out losses in the unit of the target; of several objectives in bits a byte their mean."""
        if self.config is None or self.config.target_unit == "nats":
            return self.losses
        known = [[*line["bits_per_byte"].values()] for line in self.validations]
        return [math.inf if None in bits or not bits else fmean(bits) for bits in known]

    @property
    def _keeps(self) -> bool:
        return self.config is not None and self.config.keep_best

    def observe(self, validation: dict[str, Any], module: nn.Module) -> dict[str, Any]:
        """Take notice of a validation after the first step, with the weights that it measured.

        Returns:
            The validation, and under early stopping the step of the best loss (`best_step`) and whether the training
            ends here (`stops`).
        """
        if validation["loss"] is None:  # nothing to predict
            return validation
        self.losses.append(validation["loss"])
        self.validations.append(validation)
        if self.config is None:
            return validation
        best_index = self.config.best(self.losses)
        if self._keeps and best_index == len(self.losses) - 1:
            self.best = {name: _kept(tensor.detach()) for name, tensor in module.state_dict().items()}
        assert best_index is not None
        noted = {**validation, "best_step": self.validations[best_index]["step"], "stops": self.over}
        self.validations[-1] = noted
        return noted

    def load(self, checkpoint: Path, lines: Sequence[dict[str, Any]], module: nn.Module) -> None:
        """Go on from a checkpoint, whose lines on validations are given, with the weights of the module.

        Raises:
            Damaged: the best weights are missing or damaged.
        """
        self.validations = [line for line in lines if line["step"] > 0 and line["loss"] is not None]
        self.losses = [line["loss"] for line in self.validations]
        if self._keeps and self.losses:
            stored = StoredTensors(checkpoint / f"{BEST}.safetensors", verified=True)
            self.best = {name: loaded_like(stored, name, tensor) for name, tensor in module.state_dict().items()}

    def measured(self, last: dict[str, Any]) -> dict[str, Any]:
        """The validation of the weights that the run will have; `last` is the last one."""
        if self.config is None or not self._keeps or not self.losses:
            return last
        return self.validations[self.config.best(self.losses) or 0]

    def take_best(self, module: nn.Module) -> None:
        """Give a module the best weights, if they are kept."""
        if self.best is not None:
            load_whole(module, self.best)

    def told(self, step: int, steps: int) -> str:
        """The sentence about a training that was ended here, at a step of so many."""
        assert self.config is not None
        if self.config.reaches(measured := self._measured):
            unit = "" if self.config.target_unit == "nats" else f" {self.config.target_unit}"
            return (
                f"stopped at step {step:,} of {steps:,}: the held-out loss is {measured[-1]:.4f}{unit}, and the target "
                f"{self.config.target:g}"
            )
        best_index = self.config.best(self.losses) or 0
        best, kept = self.validations[best_index], "are those of that step" if self.config.keep_best else "are the last"
        return (
            f"stopped early at step {step:,} of {steps:,}: the held-out loss was best, {self.losses[best_index]:.4f}, "
            f"at step {best['step']:,}, {counted(self.config.patience or 0, 'validation')} ago; the weights {kept}"
        )

    def summary(self, before_the_end: bool) -> dict[str, Any]:
        """The entry of summary.json, see `bakeoff.runs.records.EarlyStop`; empty without early stopping.

        Args:
            before_the_end: whether the budget has more steps than were done.
        """
        if self.config is None or not self.losses:
            return {}
        best = self.validations[self.config.best(self.losses) or 0]
        entry = {
            "stopped": self.over and before_the_end,
            "patience": self.config.patience,
            "kept_best": self.config.keep_best,
        }
        return {"early_stopping": {**entry, "best_step": best["step"], "best_loss": best["loss"]}}
