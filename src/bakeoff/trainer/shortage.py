"""A step that runs out of memory is taken anew in smaller micro-batches, on all processes alike.

Where weights may have moved already, the training goes on from its last checkpoint instead.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from bakeoff.display.wording import counted
from bakeoff.distributed.replicas import SharedWork
from bakeoff.errors import UserError
from bakeoff.machine.allocator import ran_out
from bakeoff.resources.device import return_device_memory
from bakeoff.resources.micro_batch import Size, halved, plain_size
from bakeoff.trainer.step import NORM, add_gradients, move_weights
from bakeoff.trainer.unit import M, Unit


class RanOut(Exception):
    """Memory ran out in a step that cannot be taken anew by itself.

    Args:
        together: whether all processes know, and each raises it; else the others wait for this one.
    """

    def __init__(self, together: bool) -> None:
        super().__init__("memory ran out in a step that cannot be taken anew")
        self.together = together


class Resized(Exception):
    """Micro-batches are smaller in the run, which goes on from its last checkpoint or from its start.

    All processes of a training raise it together.

    Args:
        line: a line about it.
        size: what micro-batches have now.
    """

    def __init__(self, line: str, size: Size) -> None:
        super().__init__(line)
        self.size = size


def taken(
    unit: Unit[M], micro_batches: Sequence[M], step: int, say: Callable[[str], None]
) -> dict[str, torch.Tensor] | None:
    """`optimize` of a unit that fits memory; None: it ran out, and the step is to be taken anew in halves.

    Raises:
        RanOut: it ran out when weights may have moved, or where other processes wait for this one.
        RuntimeError, MemoryError: it ran out, and micro-batches cannot be smaller.
    """
    processes, distribution = unit.processes, unit.distribution
    unit.note()
    with _noticed(unit, others_wait=distribution.equal_passes) as short:
        means = add_gradients(unit, micro_batches, step)
    if processes.largest(len(short)):
        _give_back(unit)
        cut(unit, step, step, lambda line: say(f"{line}, which is taken anew"))
        return None
    with _noticed(unit, others_wait=not processes.alone) as short:
        distribution.end_step()
    works_together = not processes.alone and isinstance(unit.optimizer, SharedWork)
    with _noticed(unit, others_wait=distribution.equal_passes or works_together) as moving:
        norm = move_weights(unit, step)
    if processes.largest(len(short) + len(moving)):
        raise RanOut(together=True)
    return {**means, NORM: norm}


@contextmanager
def _noticed(unit: Unit[M], others_wait: bool) -> Iterator[list[bool]]:
    """A list that has an entry after a context in which memory ran out, and micro-batches can be smaller.

    Raises:
        RanOut: it ran out, and other processes wait in the context for this one.
    """
    short: list[bool] = []
    try:
        yield short
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error) or halved(unit.micro_batch) is None:
            raise
        if others_wait:
            raise RanOut(together=False) from None
        short.append(True)


def _give_back(unit: Unit[M]) -> None:
    """Free what a step has made, once its exception is gone."""
    unit.optimizer.zero_grad(set_to_none=True)
    return_device_memory(unit.placement.device)


def cut(unit: Unit[M], step: int, first: int, say: Callable[[str], None] = lambda line: None) -> str:
    """Halve the micro-batches of a unit and of its run, from the step `first` on, because `step` ran out of memory.

    The files of the run change last, after `say`, which saves: of a run that is killed before, the steps up to `first`
    are taken anew in the parts that they had.

    Returns:
        A line about it, without its end, which `say` gets, too.
    """
    before, size = unit.micro_batch, halved(unit.micro_batch)
    assert size is not None
    line = _line(unit, before, size, step, first)
    unit.cut(size)
    say(line)
    unit.processes.write(unit.record, _change(unit, size, first))
    return line


def ended(unit: Unit[M], step: int, first: int) -> UserError:
    """What ends all processes when memory ran out in one for which others wait; its run has smaller micro-batches.

    This process writes that, whichever it is, because the others cannot be asked.
    """
    size = halved(unit.micro_batch)
    assert size is not None
    unit.record(_change(unit, size, first))
    line = _line(unit, unit.micro_batch, size, step, first)
    return UserError(f"{line}; others wait for this process, so that all end: the same command with --resume goes on")


def _change(unit: Unit[M], size: Size, first: int) -> dict[str, object]:
    return {"from_step": unit.steps_before + first, "micro_batch": plain_size(size)}


def _line(unit: Unit[M], before: Size, size: Size, step: int, first: int) -> str:
    where = "here" if step == first else f"step {first:,}"
    return (
        f"{unit.title}: {unit.placement.device} ran out of memory at step {step:,}: micro-batches of "
        f"{_in_words(size)} in place of {_in_words(before)} from {where} on"
    )


def _in_words(size: Size) -> str:
    return counted(size, "row") if isinstance(size, int) else f"{size.tokens:,} tokens"
