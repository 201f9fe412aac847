"""Cores and memory that this process may use, within the limits of the system, its affinity and its container."""

import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
MEMORY = Path("/proc/meminfo")
MEMORY_OF_A_GROUP = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""The files of a control group's limit and use, and the key in memory.stat of its reclaimable memory, for both versions
of control groups."""


def usable_cores() -> int:
    """Number of cores that this process may use, at least one; a container's share is rounded down."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = [share for folder in _groups() if (share := _share_of(folder)) is not None]
    return max(1, min([cores, *(math.floor(share) for share in shares)]))


def processor_name() -> str:
    """The processor's name in the system."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def free_memory() -> int | None:
    """Available memory in bytes, within the system and the container's limit; None: unknown.

    A container's cache of files counts as available, since the system reclaims it when memory is needed.
    """
    sizes = [int(line.split()[1]) * 1024 for line in _lines(MEMORY) if line.startswith("MemAvailable:")]
    for folder in _groups():
        for limit, used, given_back in MEMORY_OF_A_GROUP:
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                statistics = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat"))
                sizes.append(max(0, most - now + int(statistics.get(given_back, 0))))
    return min(sizes, default=None)


def _groups() -> Iterator[Path]:
    """The folders of this process's control groups and of their parents; some may not exist."""
    yield MOUNTED
    for line in _lines(GROUPS):
        _, controllers, path = line.split(":", 2)
        root = MOUNTED / controllers if controllers else MOUNTED
        folder = root / path.strip("/")
        while folder.is_relative_to(MOUNTED) and folder != MOUNTED:
            yield folder
            folder = folder.parent


def _share_of(folder: Path) -> float | None:
    """The limit of a control group in cores; None: there is no limit."""
    fields = " ".join(_lines(folder / "cpu.max")).split()
    if len(fields) == 2 and fields[0].isdecimal():
        return int(fields[0]) / int(fields[1])
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota / period if quota is not None and period else None


def _number(file: Path) -> int | None:
    """The number in a file; None: other content, such as "max" for no limit."""
    text = " ".join(_lines(file))
    return int(text) if text.isdecimal() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
