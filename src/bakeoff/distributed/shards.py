"""A module whose weights are divided among the processes, which gather those of a part while they need them (FSDP2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.distributed.processes import Processes
from bakeoff.distributed.replicas import Replicas
from bakeoff.stored_tensors import StoredTensors

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


class Shards(Replicas):
    """A module that `shard` has divided; its gradients are summed, and divided alike, after each part's backward pass.

    Every pass of one process is a pass of all, so that a process with fewer micro-batches than others reads one more
    that counts for nothing.
    """

    equal_passes = True

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, processes: Processes) -> None:
        super().__init__(module, optimizer, processes)
        if isinstance(optimizer, torch.optim.SGD):  # torch fuses AdamW, but not SGD, for divided weights
            for group in optimizer.param_groups:
                group["fused"], group["foreach"] = False, True

    @override
    def _make_equal(self) -> None:
        """Nothing: `shard` has begun with the weights of the first process."""

    @override
    def _sum_gradients(self) -> None:
        """Nothing: they are summed in the backward pass."""


def shard(
    module: nn.Module,
    parts: Iterable[nn.Module],
    processes: Processes,
    device: torch.device,
    entries: Iterable[str] = (),
) -> None:
    """Divide the weights of a module among processes; each part is gathered by itself, and what is left with the whole.

    Args:
        module: the module, with the weights that it begins with, on any device: each part comes to the device by
            itself, so that no device holds all at once.
        parts: modules in it whose forward passes follow each other.
        processes: the processes, each with the same module.
        device: their devices are of its type.
        entries: names of methods, beside `forward`, by which the module is called.
    """
    # Imported here because few processes divide a module, and it takes longer than all else.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    processes.copy_first([each.detach() for each in [*module.parameters(), *module.buffers()]])
    mesh = init_device_mesh(device.type, (processes.size,))
    for part in parts:
        if any(True for _ in part.parameters()):
            fully_shard(part, mesh=mesh)
    fully_shard(module, mesh=mesh)
    for name in entries:
        register_fsdp_forward_method(module, name)
    for each in module.modules():
        if isinstance(each, FSDPModule):
            each.set_gradient_divide_factor(1.0)  # losses are divided by the counts of the whole batch already
            each.set_force_sum_reduction_for_comms(True)  # gloo cannot take the mean


@contextmanager
def put_together(module: nn.Module) -> Iterator[None]:
    """A context in which each process has the whole of a module that `shard` has divided, and calls any part by itself.

    All processes enter it together, without gradients; in it they need not make the same passes.
    """
    from torch.distributed.fsdp import FSDPModule

    parts = [each for each in module.modules() if isinstance(each, FSDPModule)]
    with torch.no_grad():
        for part in parts:
            part.unshard()
            part.set_reshard_after_forward(False, recurse=False)
        try:
            yield
        finally:
            for part in parts:
                part.set_reshard_after_forward(part is not module, recurse=False)
                part.reshard()


def divided(tensor: Tensor) -> bool:
    """Whether a tensor is the part of a larger one that this process has."""
    return hasattr(tensor, "full_tensor")


def whole(tensors: Mapping[str, Tensor], processes: Processes) -> dict[str, Tensor]:
    """Tensors put together from the parts of all processes, on the CPU of the first; others get what they have whole.

    All processes ask for them together, with the same names in the same order.
    """
    made = {}
    for name, tensor in tensors.items():
        put_together = whole_tensor(tensor)
        if put_together is tensor:
            made[name] = tensor
        elif processes.first:
            made[name] = put_together.cpu()
    return made


def whole_tensor(tensor: Tensor) -> Tensor:
    """A tensor put together from the parts of all processes, which ask for it together; one that is whole, as it is."""
    return cast("DTensor", tensor).full_tensor() if divided(tensor) else tensor


def own_part(tensor: Tensor) -> Tensor:
    """The part of a tensor that this process has; all of one that is not divided."""
    return cast("DTensor", tensor).to_local() if divided(tensor) else tensor


def divided_as(tensor: Tensor, part: Tensor) -> Tensor:
    """A tensor divided as another one is, of which this process has a part on the CPU; or the part, if neither is."""
    if not divided(tensor):
        return part
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor

    like = cast("DTensor", tensor)
    mesh = init_device_mesh("cpu", (like.device_mesh.size(),))
    return DTensor.from_local(part, mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride())


def placed_like(tensor: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole tensor, where `like` is divided; else the tensor itself.

    What has another shape than `like`, such as the means of its rows, is kept whole by every process.
    """
    if not divided(like) or divided(tensor) or not tensor.dim():
        return tensor
    from torch.distributed.tensor import Replicate, distribute_tensor

    parts = cast("DTensor", like)
    placements = parts.placements if tensor.shape == like.shape else [Replicate()] * len(parts.placements)
    return distribute_tensor(tensor.to(like.device), parts.device_mesh, placements, src_data_rank=None)


def loaded_like(tensors: Mapping[str, Tensor], name: str, like: Tensor) -> Tensor:
    """This process's part of one of some whole tensors, see `placed_like`; of stored ones nothing else is read.

    Raises:
        KeyError: there is none of this name.
        Damaged: a file is not what was written.
    """
    if not (isinstance(tensors, StoredTensors) and divided(like) and tensors.shape(name) == tuple(like.shape)):
        return placed_like(tensors[name], like)
    from torch.distributed.tensor import DTensor

    parts = cast("DTensor", like)
    (chunk,) = parts.__create_chunk_list__()
    part = tensors.region(name, chunk.offsets, chunk.sizes).to(like.device)
    return DTensor.from_local(
        part, parts.device_mesh, parts.placements, run_check=False, shape=parts.shape, stride=parts.stride()
    )


def load_whole(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a module, divided or not, its tensors from whole ones, one after the other.

    Raises:
        KeyError: one is missing.
        Damaged: a file of stored ones is not what was written.
    """
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            tensor.copy_(loaded_like(tensors, name, tensor))


def of_one_kind(tensors: Sequence[Tensor]) -> list[list[int]]:
    """The indices of the tensors that are divided, and of those that are not, for operations on lists of one kind."""
    kinds: dict[bool, list[int]] = {}
    for index, tensor in enumerate(tensors):
        kinds.setdefault(divided(tensor), []).append(index)
    return list(kinds.values())
