"""Kernels in C for bfloat16 on a CPU (`kernels/`), compiled by the machine's compiler when they are first needed."""

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

from bakeoff.machine.compiler import Compiled, compiled
from bakeoff.ops.cpu.bfloat16 import stays_in_bfloat16

VARIABLE = "BAKEOFF_KERNELS"
"""The environment variable that, set to 0, leaves the kernels out."""

SOURCES = Path(__file__).with_name("kernels")

IN_MEMORY = (Tensor, nn.Parameter)
"""Types of tensors whose numbers are at their address; those of others, as parts of divided ones, are elsewhere."""

LEAST_NUMBERS = 1 << 15
"""Least count of numbers that a further thread is worth."""

BLOCK = 64
"""Rows, tokens or positions whose gradients of parameters a kernel sums into one addend, as in `kernels/vectors.h`."""

Argument = Tensor | int | float | None
"""What kernels take: addresses (of no tensor: null), integers of 64 bits and float32."""


@cache
def kernels() -> Compiled:
    """The kernels, or why there are none."""
    if os.environ.get(VARIABLE) == "0":
        return Compiled(None, f"switched off by {VARIABLE}=0")
    return compiled(sorted(SOURCES.glob("*.c")))


def runs_kernels(x: Tensor) -> bool:
    """Whether an operation on x is to be done by a kernel.

    x is a tensor of bfloat16 on a CPU with numbers in memory, nothing compiles, traces, transforms or counts the
    operations, and the kernels are there; they are compiled here if need be.
    """
    return (
        stays_in_bfloat16(x)
        and not torch._C._is_tracing()
        and _get_current_dispatch_mode() is None
        and torch._C._functorch.maybe_current_level() is None
        and kernels().library is not None
    )


def multiplies_matrices(x: Tensor) -> bool:
    """Whether operations on x are to be done by kernels that multiply matrices of bfloat16."""
    return runs_kernels(x) and _permitted()


@cache
def _permitted() -> bool:
    """Whether this processor multiplies such matrices, and the system permits it."""
    library = kernels().library
    return library is not None and bool(library.multiplies_matrices())


def run(name: str, items: int, size: int, *arguments: Argument) -> None:
    """Call a kernel for a number of items, divided over torch's threads.

    Args:
        name: the kernel, a function of C of the first item, the end of the items, and the arguments.
        items: their number. Each is computed by itself, so that results do not depend on the number of threads.
        size: numbers that an item has.
        arguments: the kernel's further arguments; tensors are contiguous.
    """
    kernel, values = _kernel(name, arguments), [_value(each) for each in arguments]
    most = 1 if size == 0 else items * size // LEAST_NUMBERS
    threads = min(torch.get_num_threads(), items, most)
    if threads <= 1:
        kernel(0, items, *values)
        return
    bounds = [items * number // threads for number in range(threads + 1)]
    first, *others = pairwise(bounds)
    pool = _pool(torch.get_num_threads(), os.getpid())
    running: list[Future[None]] = []
    try:
        running.extend(pool.submit(kernel, *each, *values) for each in others)
        kernel(*first, *values)
    finally:  # nothing may write into the arguments' memory after an interruption
        wait(running)


def _kernel(name: str, arguments: Sequence[Argument]) -> Callable[..., None]:
    """The function of C, with the types of its arguments, which every call of it has."""
    function: Any = getattr(kernels().library, name)
    if function.argtypes is None:
        function.argtypes = (ctypes.c_int64, ctypes.c_int64, *map(_type, arguments))
        function.restype = None
    kernel: Callable[..., None] = function
    return kernel


def _type(argument: Argument) -> type[ctypes.c_void_p | ctypes.c_int64 | ctypes.c_float]:
    if argument is None or isinstance(argument, Tensor):
        return ctypes.c_void_p
    return ctypes.c_int64 if isinstance(argument, int) else ctypes.c_float


def _value(argument: Argument) -> int | float | None:
    if isinstance(argument, Tensor):
        assert type(argument) in IN_MEMORY
        assert argument.is_contiguous()
        return argument.data_ptr()
    return argument


@lru_cache(maxsize=1)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """The threads beside the calling one; a process that was forked off has none of its parent's, and makes others."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix="kernels")
