"""Copies of tensors to a device, and from it, that the processor does not wait for."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

ASYNCHRONOUS = ("cuda", "meta")
"""Kinds of devices that copy by themselves while the processor goes on; in tests meta tensors stand for those of a GPU.
"""


def pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor in memory from which a GPU of CUDA reads by itself; for other devices the tensor as it is.

    Pinning takes the processor as long as a copy, so that it is done in the thread that makes batches.
    """
    return tensor.pin_memory() if device.type == "cuda" and tensor.device.type == "cpu" else tensor


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; what comes next on the device waits for the copy, but not the processor.

    From memory that is not pinned CUDA would copy only after all work that it was given before, and let the processor
    wait for it.
    """
    return pinned(tensor, device).to(device, non_blocking=device.type in ASYNCHRONOUS)


def fetched(tensor: Tensor) -> Tensor:
    """A copy of a tensor in the machine's memory; one from a GPU is under way, see `arrival`."""
    tensor = tensor.detach()
    if not tensor.is_cuda:
        return tensor.to("cpu", copy=True, memory_format=torch.contiguous_format)
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return copy.copy_(tensor, non_blocking=True)


def arrival(devices: Iterable[torch.device]) -> Callable[[], None]:
    """A function that waits for all copies that `fetched` has begun from some devices; any thread may call it."""
    marks = [torch.cuda.current_stream(device).record_event() for device in devices if device.type == "cuda"]

    def wait() -> None:
        for mark in marks:
            mark.synchronize()

    return wait
