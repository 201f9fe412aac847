"""Devices and precisions of trainings."""

import contextlib
import resource
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch

from bakeoff.errors import UserError
from bakeoff.machine.allocator import keep_memory, return_memory
from bakeoff.machine.capacity import processor_name
from bakeoff.ops.cpu.bfloat16 import has_matrix_units, has_vector_products
from bakeoff.ops.cpu.matrix_products import Float32Products

DEVICES = ("auto", "cpu", "cuda", "mps")

Precision = Literal["auto", "float32", "bfloat16"]
"""The precision of products that a user asks for."""
ProductPrecision = Literal["float32", "bfloat16"]
"""The precision in which products are computed."""


TOKENS_ON_CPU = 1024
"""Number of tokens, padding included, in a batch of inference on a CPU, so that the states between two layers stay in
its caches. With 8,192 the same rows take twice as long (bert-mini, one thread)."""


def tokens_at_once(device: torch.device, most: int) -> int:
    """Number of tokens in a batch of inference.

    Args:
        device: the device of the model.
        most: the number on any device but a CPU, and the upper bound on a CPU.
    """
    return min(most, TOKENS_ON_CPU) if device.type == "cpu" else most


class Placement(NamedTuple):
    """The device and the precision of computations."""

    device: torch.device
    """The device of the tensors."""
    precision: ProductPrecision
    """The precision of products."""

    @classmethod
    def of(cls, device: str, precision: Precision) -> "Placement":
        """The device with a name, and a precision on it; see `resolve_device` and `resolve_precision`."""
        on = resolve_device(device)
        return cls(on, resolve_precision(precision, on))

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which a forward pass has this precision."""
        return autocast(self.device, self.precision)


def require_known_device(name: str, key: str = "--device") -> None:
    """Refuse the name of a device that no machine has.

    Args:
        name: the name.
        key: what it was given by, for the error.

    Raises:
        UserError: it is none.
    """
    kind, _, index = name.partition(":")
    if kind not in DEVICES or (index and (kind != "cuda" or not index.isdigit())):
        raise UserError(f"{key} {name}: unknown device; choose from {', '.join(DEVICES)}")


def resolve_device(name: str) -> torch.device:
    """The device with a name; auto is the first of cuda, mps and cpu that is available.

    A GPU of CUDA has its index: `cuda` is the process's current one. Its products of float32 are made in TF32.

    Raises:
        UserError: the name is unknown, or this machine or this build of torch has no such device.
    """
    name = str(name)  # a torch.device says its name, too
    require_known_device(name)
    kind, _, index = name.partition(":")
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available[kind])
    elif not available[kind] or (index and int(index) >= torch.cuda.device_count()):
        raise UserError(f"--device {name}: torch {torch.__version__} finds no such device here; use --device cpu")
    if name == "cpu":
        # Denormal numbers make a step up to 1.4 times slower; threads inherit the setting when they start.
        torch.set_flush_denormal(True)
        keep_memory()
        if "AMD" in processor_name():
            Float32Products.ask_onednn()
    if not name.startswith("cuda"):
        return torch.device(name)
    torch.set_float32_matmul_precision("high")  # TF32, eight times as fast on an A100; convolutions have it by default
    if index:
        return torch.device("cuda", int(index))
    # A process that only gives work to others does not start CUDA, which takes memory of the GPU.
    return torch.device("cuda", torch.cuda.current_device() if torch.cuda.is_initialized() else 0)


def device_name(device: torch.device) -> str:
    """The name of a GPU of CUDA, or that of the processor."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()


def resolve_precision(precision: Precision, device: torch.device) -> ProductPrecision:
    """The precision; auto is bfloat16 on GPUs and CPUs with fast instructions for its products, else float32.

    Raises:
        UserError: there is no such precision.
    """
    if precision not in get_args(Precision):
        raise UserError(f"precision {precision}: choose from {', '.join(get_args(Precision))}")
    if precision == "auto":
        if device.type == "cuda":
            return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
        return "bfloat16" if device.type == "cpu" and _multiplies_bfloat16() else "float32"
    return precision


def _multiplies_bfloat16() -> bool:
    """Whether this CPU multiplies matrices of bfloat16 faster than those of float32.

    It does with Intel's matrix units (AMX), and with the vector products (AVX512_BF16) of AMD's processors since Zen 4.
    The vector products of Intel's processors reach 0.6 of the rate of float32. Without either, torch converts the
    matrices and multiplies in float32.
    """
    return has_matrix_units() or (has_vector_products() and "AMD" in processor_name())


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """The context in which a forward pass has a precision, float32 or bfloat16."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def reset_peak_memory(device: torch.device) -> bool:
    """Reset the peak memory before a training, so that earlier ones in this process do not count.

    Nor do the libraries that torch loads with the first step of an optimizer, which are loaded now.

    Returns:
        Whether the system allows it; False: `peak_memory` is the peak of the whole process so far.
    """
    import torch._dynamo

    return_memory()
    _at_reset.pop(device.type, None)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            return False
    if device.type in ("cuda", "cpu"):
        _at_reset[device.type] = peak_memory(device)
    return device.type in _at_reset


_at_reset: dict[str, int] = {}
"""Bytes of memory in use at the last reset, by the type of device; without an entry there was none."""


def peak_memory_since_reset(device: torch.device) -> int | None:
    """Peak memory in bytes beyond what was in use at the last reset; None: the system allows no reset."""
    before = _at_reset.get(device.type)
    return None if before is None else max(0, peak_memory(device) - before)


def return_device_memory(device: torch.device) -> None:
    """Return freed memory to the device or, on a CPU, to the system, after a collection of garbage."""
    return_memory()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def peak_memory(device: torch.device) -> int:
    """Peak memory in bytes since the last reset: of the device, or of this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if (of_process := _peak_of_process()) is not None:
        return of_process
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _peak_of_process() -> int | None:
    """Peak memory of this process in bytes; None: this system has no such file as Linux has."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024
    return None


def work_clock(device: torch.device) -> float:
    """Seconds of work: on a CPU the processor time of all threads, which other programs hardly change.

    On other devices it is the time by the clock, since the processor mostly waits.
    """
    return time.process_time() if device.type == "cpu" else time.perf_counter()
