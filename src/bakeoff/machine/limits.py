"""The limits of this machine that long work runs into: space on the disk, and open files."""

import os
import shutil
from pathlib import Path

from bakeoff.config import Config
from bakeoff.display.wording import memory

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

LEAST_DISK = 1 << 30
"""Bytes of free space below which it is remarked on: several checkpoints of a small model."""

LEAST_FILES = 1024
"""Open files below which it is remarked on: a training has under 100, a comparison some for each worker, a cluster's
head some for each machine."""

LEAST_INODES = 10_000
"""Files that can still be made below which it is remarked on: a run has about 20."""


class Limits(Config):
    """What is left of a disk, and the number of files that a process may have open."""

    path: str
    """A folder on the disk."""
    disk: int
    """Size of the disk in bytes."""
    free_disk: int
    """Bytes that are left for this user."""
    free_inodes: int | None
    """Number of files that can still be made; None: the disk has no such limit."""
    open_files: int | None
    """The most open files of a process; None: there is no limit, or this system does not tell."""
    file_size: int | None
    """The most bytes of a file; None: there is no limit, or this system does not tell."""

    @classmethod
    def of(cls, path: Path) -> "Limits":
        """The limits for files below a path, which need not exist yet."""
        folder = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
        usage = shutil.disk_usage(folder)
        inodes = os.statvfs(folder) if hasattr(os, "statvfs") else None
        return cls(
            path=str(folder),
            disk=usage.total,
            free_disk=usage.free,
            free_inodes=inodes.f_favail if inodes is not None and inodes.f_files else None,
            open_files=_limit("RLIMIT_NOFILE"),
            file_size=_limit("RLIMIT_FSIZE"),
        )

    @property
    def problems(self) -> list[str]:
        """Sentences on limits that are low, with what to do."""
        lines = []
        if self.free_disk < LEAST_DISK:
            lines.append(
                f"{self.path}: the disk has {memory(self.free_disk)} left; a training that it cannot hold stops"
            )
        if self.free_inodes is not None and self.free_inodes < LEAST_INODES:
            lines.append(f"{self.path}: the disk has room for {self.free_inodes:,} more files, whatever their size")
        if self.open_files is not None and self.open_files < LEAST_FILES:
            lines.append(f"a process may have {self.open_files:,} open files; `ulimit -n {LEAST_FILES}` allows more")
        if self.file_size is not None and self.file_size < LEAST_DISK:
            lines.append(f"a file may have {memory(self.file_size)}; `ulimit -f unlimited` allows more")
        return lines

    def text(self) -> str:
        """The limits in words."""
        files = "any number of" if self.open_files is None else f"{self.open_files:,}"
        return f"{memory(self.free_disk)} of {memory(self.disk)} free on the disk, {files} open files"


def _limit(name: str) -> int | None:
    if resource is None:
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft
