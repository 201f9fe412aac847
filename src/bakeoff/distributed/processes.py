"""The processes that train one model together: this one's place among them, their sums and their agreements."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import torch
import torch.distributed as torch_processes
from torch import Tensor

from bakeoff.errors import LostProcess, UserError
from bakeoff.machine.allocator import ran_out

Value = TypeVar("Value")
Thing = TypeVar("Thing")

BUCKET_BYTES = 16 << 20
"""Bytes of tensors that are added up in one exchange; larger tensors go alone."""

UNDER_WAY = 4
"""Number of exchanges of tensors that are under way at the same time, which bounds the memory for their copies."""


class Processes:
    """The place of this process among those that train one model; alone, every method works for itself at once.

    All processes call the methods that exchange something in the same order. Numbers and decisions are exchanged
    between processors (gloo), tensors between the devices that they are on.

    Args:
        rank: the number of this process, from 0.
        size: the number of processes.
        local_rank: its number among the processes of its machine.
        shards: whether they divide the weights of the model among them, instead of having copies.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0, shards: bool = False) -> None:
        self.rank, self.size, self.local_rank, self.shards = rank, size, local_rank, shards

    def dividing(self, shards: bool) -> "Processes":
        """The same processes, which divide the weights of a model among them where `shards` asks for it.

        Raises:
            UserError: it does, and there is a single process.
        """
        if not shards:
            return self
        if self.alone:
            raise UserError(
                "--shard divides a model among several processes, and this is one; start them by torchrun "
                "--nproc-per-node N"
            )
        return Processes(self.rank, self.size, self.local_rank, shards=True)

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    @property
    def on_this_machine(self) -> int:
        """The number of processes on this machine; at most, where the launcher does not say it."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", self.size))

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.size == 1

    @cached_property
    def beside(self) -> Any:
        """A group of the same processes, for exchanges in another thread; all ask for it together, in the main one."""
        with exchanging():
            return torch_processes.new_group(backend="gloo")

    def share(self, count: int) -> range:
        """The numbers of this process's part of `count` things, which are neighbours; parts are in order of ranks."""
        return range(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def device_name(self, name: str) -> str:
        """The device of this process where the processes of a machine are asked to use `name`: each one of its own.

        Raises:
            UserError: a single device is named for several processes, or the machine has fewer devices than processes.
        """
        if self.alone or (name not in ("auto", "cuda", "cpu") and not name.startswith("cuda:")):
            return name
        if name.startswith("cuda:"):
            raise UserError(
                f"--device {name}: a single device, for {self.size} processes; give cuda: each takes its own"
            )
        if name == "cpu" or not torch.cuda.is_available():
            return "cpu" if name == "auto" else name
        count = torch.cuda.device_count()
        if self.local_rank >= count:
            raise UserError(
                f"--device {name}: this machine has {count} of them, and process {self.local_rank} of it, counted from "
                f"0, wants one of its own; start {count} here (torchrun --nproc-per-node {count})"
            )
        torch.cuda.set_device(self.local_rank)
        return f"cuda:{self.local_rank}"

    def require_shares(self, where: str, batch: int, micro_batch: int, unit: str, setting: str | None) -> None:
        """Refuse more processes than a batch has micro-batches, each of which takes one at least.

        Args:
            where: what is trained, for the message.
            batch: the size of a batch.
            micro_batch: the size of a micro-batch.
            unit: rows or tokens, in which sizes are counted; there may be a last micro-batch of fewer rows.
            setting: the option that sets the size, with {} for it; None: it is fixed.

        Raises:
            UserError: there are more.
        """
        count = max(1, -(-batch // micro_batch) if unit == "rows" else batch // micro_batch)
        if self.size <= count:
            return
        give = "" if setting is None or self.size > batch else f"give {setting.format(batch // self.size)}, or "
        raise UserError(
            f"{where}: {self.size:,} processes share the micro-batches of a batch, and its {batch:,} {unit} are "
            f"{count:,} micro-batch{'' if count == 1 else 'es'}; {give}start {count:,} at most"
        )

    def gathered(self, numbers: Sequence[float]) -> list[list[float]]:
        """The numbers of each process, by ranks; every process gives as many."""
        if self.alone:
            return [list(numbers)]
        mine = torch.tensor(numbers, dtype=torch.float64)
        everywhere = mine.new_empty(self.size, len(numbers))
        with exchanging():
            torch_processes.all_gather(list(everywhere.unbind()), mine)
        return everywhere.tolist()

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """The sum of each number over all processes."""
        return [sum(column) for column in zip(*self.gathered(numbers), strict=True)]

    def largest(self, number: int) -> int:
        """The largest of the numbers of all processes."""
        return int(max(row[0] for row in self.gathered([number])))

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, which is the same everywhere to the last bit."""
        if self.alone:
            return
        under_way: deque[tuple[Any, Tensor, list[Tensor]]] = deque()
        with exchanging():
            for bucket in _buckets(tensors):
                flat = torch.cat([each.flatten() for each in bucket])
                under_way.append((torch_processes.all_reduce(flat, async_op=True), flat, bucket))
                if len(under_way) == UNDER_WAY:
                    _finish(*under_way.popleft())
            while under_way:
                _finish(*under_way.popleft())

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of the first process."""
        if self.alone:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([each.flatten() for each in bucket])
            with exchanging():
                _finish(torch_processes.broadcast(flat, 0, async_op=True), flat, bucket)

    def once(self, work: Callable[[], Value]) -> Value:
        """What `work` gives on the first process, which alone does it; an error there ends all processes."""
        if self.alone:
            return work()
        answer: list[Any] = [None]
        try:
            if self.first:
                answer = [(work(),)]
        finally:
            with exchanging():
                torch_processes.broadcast_object_list(answer, 0)
        if answer[0] is None:
            raise SystemExit(2)  # the first process says why
        value: Value = answer[0][0]
        return value

    def share_out(self, things: Sequence[Value], work: Callable[[Value], object]) -> None:
        """Do work for each of some things, on one of the processes, and wait until all is done."""
        for index in self.share(len(things)):
            work(things[index])
        if not self.alone:
            self.wait()

    def write(self, work: Callable[..., object], *arguments: Any) -> None:
        """Do work that changes files: the first process does it, and the others go on."""
        if self.first:
            work(*arguments)

    def collected(self, value: Value) -> list[Value]:
        """The values of all processes, by ranks."""
        if self.alone:
            return [value]
        values: list[Any] = [None] * self.size
        with exchanging():
            torch_processes.all_gather_object(values, value)
        return values

    def joined(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of all processes on the CPU, one after the other along the first axis; any may have none."""
        if self.alone:
            return dict(tensors)
        parts = [each for each in self.collected({name: each.cpu() for name, each in tensors.items()}) if each]
        return {name: torch.cat([each[name] for each in parts]) for name in (parts[0] if parts else {})}

    def rows(self, own: Tensor, count: int) -> Tensor:
        """(count, ...) rows, of which each process gives its `part` of them, in order."""
        if self.alone:
            return own
        each = -(-count // self.size)
        mine = own if len(own) == each else torch.cat([own, own.new_zeros(each - len(own), *own.shape[1:])])
        everywhere = own.new_empty(self.size, *mine.shape)
        with exchanging():
            torch_processes.all_gather(list(everywhere.unbind()), mine.contiguous())
        return everywhere.flatten(0, 1)[:count]

    def part(self, count: int) -> range:
        """The numbers of this process's part of `count` rows, as `rows` joins them; the last may have fewer."""
        each = -(-count // self.size)
        return range(min(count, self.rank * each), min(count, (self.rank + 1) * each))

    def divided(self, things: Sequence[Thing], work: Callable[[Thing], Mapping[int, Value]]) -> dict[int, Value]:
        """What `work` makes of some things, by numbers; each process takes every `size`-th thing, and gets all."""
        made: dict[int, Value] = {}
        for each in things[self.rank :: self.size]:
            made |= work(each)
        return {number: value for part in self.collected(made) for number, value in part.items()}

    def read_once(self, parts: Iterable[Value]) -> Iterator[Value]:
        """The parts of something that is read, on all processes; the first one reads."""
        if self.alone:
            yield from parts
            return
        reading = iter(parts)
        while (part := self.once(lambda: next(((each,) for each in reading), None))) is not None:
            yield part[0]

    def wait(self) -> None:
        """Wait for all processes."""
        self.gathered([0.0])


ALONE = Processes()
"""A process that works for itself."""


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one type and device, in their order, together `BUCKET_BYTES` at most unless a single one is larger."""
    kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each)
    for alike in kinds.values():
        bucket, size = list[Tensor](), 0
        for each in alike:
            if bucket and size + each.nbytes > BUCKET_BYTES:
                yield bucket
                bucket, size = [], 0
            bucket.append(each)
            size += each.nbytes
        yield bucket


def _finish(exchange: Any, flat: Tensor, tensors: list[Tensor]) -> None:
    """Wait for an exchange, and put what it has made of the tensors, one after the other in `flat`, into them."""
    exchange.wait()
    parts = flat.split([each.numel() for each in tensors])
    torch._foreach_copy_(tensors, [part.view_as(each) for part, each in zip(parts, tensors, strict=True)])


@contextmanager
def exchanging() -> Iterator[None]:
    """Exchange something with the others; where one of them is gone, this is an error of its own kind."""
    try:
        yield
    except RuntimeError as error:
        if ran_out(error):
            raise
        raise LostProcess("another process of this training has ended without a word") from error
