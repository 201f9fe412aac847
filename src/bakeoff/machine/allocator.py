"""Control of the C library's allocator (glibc), which keeps or returns memory that this process has freed.

And the errors of a lack of memory.
"""

import contextlib
import ctypes
import gc
import re
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # names and numbers of malloc.h

_OUT_OF_MEMORY = re.compile("can't allocate memory|out of memory", re.IGNORECASE)
"""torch's words for a lack of memory, on a CPU and on a GPU."""


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory is exhausted, of this machine or of a GPU."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error)))
    )


def return_memory() -> None:
    """Return freed memory to the system, after a collection of garbage."""
    gc.collect()
    _ask("malloc_trim", 0)


def return_gaps() -> None:
    """Return freed memory to the system, without a collection of garbage.

    Tensors of changing sizes leave gaps in the heap into which later tensors do not fit, so that the heap grows
    although
    the memory in use does not.
    """
    _ask("malloc_trim", 0)


def keep_memory() -> None:
    """Keep freed memory for later allocations, until `return_memory` or `return_gaps`.

    Each step of a training allocates and frees the same large tensors. By default the C library returns each of them to
    the system, which then provides it again page by page, filled with zeros.
    """
    _ask("mallopt", M_MMAP_MAX, 0)
    _ask("mallopt", M_TRIM_THRESHOLD, -1)


def _ask(function: str, *arguments: int) -> None:
    """Call a function of the C library, if it has one of that name."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)
