"""What the C library does with memory that this process has freed."""

import contextlib
import ctypes
import gc
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # names and numbers of malloc.h


def return_memory() -> None:
    """Give what has been freed back to the system, where the C library would keep it (glibc)."""
    gc.collect()
    _ask("malloc_trim", 0)


def return_gaps() -> None:
    """Give the system the pages between what is in use (glibc), without looking for what nobody refers to any more.

    Tensors of ever other sizes leave gaps in the heap that none of the next fits into; it grows although no more is in
    use.
    """
    _ask("malloc_trim", 0)


def keep_memory() -> None:
    """Keep what is freed until `return_memory`, for whatever is needed next (glibc).

    Every step of a training takes and frees the same large tensors. The C library would hand each of them back to the
    system, which would have to give it out again page by page, filled with zeros.
    """
    _ask("mallopt", M_MMAP_MAX, 0)
    _ask("mallopt", M_TRIM_THRESHOLD, -1)


def _ask(function: str, *arguments: int) -> None:
    """Call a function of the C library, where there is one of that name."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)
