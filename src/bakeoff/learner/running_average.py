"""A mean of the weights over the steps so far, beside the weights that are trained."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bakeoff.distributed.shards import loaded_like, of_one_kind


class RunningAverage:
    """a <- a + rate (w - a) after every step, where w are the weights and a begins as w.

    The rates are those of `optimization.averages`: an exponential mean has the same in every step, an even mean of n
    weights 1, 1/2, ..., 1/n after n of the steps and 0 after the others. Buffers are averaged, too; integer buffers
    keep their last values.

    Args:
        module: the trained module.

    Attributes:
        tensors: the average, by the names of the module's tensors; the trained weights while the two are exchanged.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.tensors: dict[str, Tensor] = {name: tensor.clone() for name, tensor in self._trained().items()}

    @torch.no_grad()
    def update(self, rate: float) -> None:
        """Move the average towards the module's weights; with a rate of 1 it becomes these."""
        if rate == 0:
            return
        averages, trained = list(self.tensors.values()), list(self._trained().values())
        for alike in of_one_kind(averages):
            torch._foreach_lerp_([averages[index] for index in alike], [trained[index] for index in alike], rate)

    @torch.no_grad()
    def exchange(self) -> None:
        """Exchange the module's weights and the average."""
        for name, tensor in self._trained().items():
            before = tensor.clone()
            tensor.copy_(self.tensors[name])
            self.tensors[name].copy_(before)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A context in which the module has the average as its weights."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the average from the tensors of a checkpoint, as `tensors` held them.

        Raises:
            KeyError: a tensor is missing.
        """
        for name, tensor in self.tensors.items():
            tensor.copy_(loaded_like(tensors, name, tensor))

    def _trained(self) -> dict[str, Tensor]:
        return {name: each.detach() for name, each in self.module.state_dict().items() if each.is_floating_point()}
