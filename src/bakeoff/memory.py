"""Memory that this process holds without need."""

import contextlib
import ctypes
import gc
import sys


def return_memory() -> None:
    """Give what has been freed back to the system, where the C library would keep it (glibc)."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
