"""A module of which every process holds a copy: equal at the beginning, and moved by the same sums of gradients."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from bakeoff.distributed.processes import Processes


@runtime_checkable
class RunningStatistics(Protocol):
    """A module that keeps moving averages of what passes through it in training."""

    kept: Tensor
    """The share of an average that is left of what it was when this was set to 1; a scalar, a factor for each pass."""

    def averages(self) -> list[Tensor]:
        """The buffers with the averages."""
        ...


@runtime_checkable
class SharedWork(Protocol):
    """An optimizer whose step the processes share, each doing a part of it for all."""

    processes: Processes


class Replicas:
    """The copies of a module, one in each process; alone, all methods do nothing.

    Args:
        module: the copy of this process; its tensors become those of the first process.
        optimizer: the optimizer of its parameters.
        processes: the processes.

    Attributes:
        equal_passes: whether all processes have to make the same number of passes.
    """

    equal_passes = False

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, processes: Processes) -> None:
        self.module, self.processes = module, processes
        if isinstance(optimizer, SharedWork):
            optimizer.processes = processes
        self._running = [each for each in module.modules() if isinstance(each, RunningStatistics)]
        self._before: list[Tensor] = []
        self._make_equal()

    def _make_equal(self) -> None:
        """Give all copies the tensors of the first process."""
        self.processes.copy_first([each.detach() for each in [*self.module.parameters(), *self.module.buffers()]])

    @contextmanager
    def passing(self, counts: bool) -> Iterator[None]:
        """A context of a pass; one that does not count leaves running statistics as they were."""
        kept = [] if counts else [each for module in self._running for each in [module.kept, *module.averages()]]
        before = [each.clone() for each in kept]
        yield
        for each, value in zip(kept, before, strict=True):
            each.copy_(value)

    def begin_step(self) -> None:
        """Note what running statistics are before a step."""
        if self.processes.alone:
            return
        for each in self._running:
            each.kept.fill_(1)
        self._before = [average.clone() for each in self._running for average in each.averages()]

    def end_step(self) -> None:
        """Add up the gradients of a step, and bring what each copy has seen of it together, before the weights move."""
        if self.processes.alone:
            return
        self._sum_gradients()
        self._join_statistics()

    def _sum_gradients(self) -> None:
        """Sum the gradients of all processes; a parameter without one on any process keeps none."""
        trained = [each for each in self.module.parameters() if each.requires_grad]
        known = self.processes.gathered([float(each.grad is not None) for each in trained])
        used = [parameter for parameter, ranks in zip(trained, zip(*known, strict=True), strict=True) if any(ranks)]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.processes.sum([each.grad for each in used if each.grad is not None])

    @torch.no_grad()
    def _join_statistics(self) -> None:
        """Make running statistics those of one process that has seen all micro-batches in their order.

        Some passes turn an average a into k a + b, where k is what is kept of it, and b does not depend on it.
        """
        if not self._running:
            return
        averages = [average for each in self._running for average in each.averages()]
        mine = torch.stack([each.kept for each in self._running for _ in each.averages()])
        kept = mine.new_zeros(self.processes.size, len(mine))
        kept[self.processes.rank] = mine
        self.processes.sum([kept])
        later, whole = kept[self.processes.rank + 1 :].prod(0), kept.prod(0)
        for average, before, own, after in zip(averages, self._before, mine.unbind(), later.unbind(), strict=True):
            average.sub_(own * before).mul_(after)
        self.processes.sum(averages)
        for average, before, share in zip(averages, self._before, whole.unbind(), strict=True):
            average.add_(share * before)
