"""The mean of the weights over the steps so far, the last counting most, beside the weights that are trained."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from bakeoff.distributed.shards import loaded_like, of_one_kind


class RunningAverage:
    """a <- a + (w - a) / n after every step, where w are the weights and a begins as w.

    It is an exponential mean with a decay of 1 - 1 / n: 0.999 in GPT-BERT (Charpentier and Samuel 2024,
    arXiv:2410.24159), with n = 1,000 of 7,812 steps. Buffers are averaged, too; integer buffers keep their last values.

    Args:
        module: the trained module.
        steps: n, one at least.

    Attributes:
        tensors: the average, by the names of the module's tensors; the trained weights while the two are exchanged.
    """

    def __init__(self, module: nn.Module, steps: float) -> None:
        self.module, self.rate = module, 1 / max(1.0, steps)
        self.tensors: dict[str, Tensor] = {name: tensor.clone() for name, tensor in self._trained().items()}

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the module's weights."""
        averages, trained = list(self.tensors.values()), list(self._trained().values())
        for alike in of_one_kind(averages):
            torch._foreach_lerp_([averages[index] for index in alike], [trained[index] for index in alike], self.rate)

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
