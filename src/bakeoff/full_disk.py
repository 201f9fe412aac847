"""Full disks: an error that tells where there was no space, and what was kept."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFull(UserError):
    """There is no space left for what is to be written.

    Attributes:
        problem: the place, and what the system says of it.
    """

    def __init__(self, problem: str, kept: str) -> None:
        super().__init__(f"{problem}; {kept}")
        self.problem = problem


@contextmanager
def full_disk(path: Path, kept: Callable[[], str]) -> Iterator[None]:
    """Have the error of a full disk name where it was, and what was kept.

    Args:
        path: what is written, where the system does not name the file.
        kept: tells what was kept and how to go on; called behind the error.

    Raises:
        DiskFull: the disk is full, a quota used up, or a file larger than files may be.
    """
    try:
        yield
    except DiskFull as error:
        raise DiskFull(error.problem, kept()) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFull(f"{error.filename or path}: cannot be written: {error.strerror}", kept()) from None
