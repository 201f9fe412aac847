"""Control of the C library's allocator (glibc), which keeps or returns memory that this process has freed.

And the errors of a lack of memory.
"""

import contextlib
import ctypes
import gc
import re
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # names and numbers of malloc.h
MADV_HUGEPAGE = 14  # of mman.h

IN_HUGE_PAGES = 1 << 30
"""Bytes of the heap for which large pages are asked; only addresses, no memory, until something is written there."""

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
    if _Heap.kept:
        _ask_for_huge_pages()


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
    _Heap.kept = True
    _ask_for_huge_pages()


class _Heap:
    """What this process has asked of its allocator."""

    kept = False


def _ask_for_huge_pages() -> None:
    """Let the system map the next part of the heap in pages of 2 MB in place of 4 KB, where it does so when asked.

    The tensors of a step lie far apart, and their addresses are looked up anew for every small page: bert-mini's step
    in bfloat16 takes 0.92 of the time.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        library, page = ctypes.CDLL(None), 1 << 21
        library.malloc.restype = ctypes.c_void_p
        memory = library.malloc(ctypes.c_size_t(IN_HUGE_PAGES))
        if memory:  # none where addresses are limited
            begin = -(-memory // page) * page
            library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(IN_HUGE_PAGES - page), MADV_HUGEPAGE)
            library.free(ctypes.c_void_p(memory))


def _ask(function: str, *arguments: int) -> None:
    """Call a function of the C library, if it has one of that name."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)
