"""Full disks: an error that tells where there was no space, and what was kept."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskFull(UserError):
    """No space is left on the disk for a file.

    Attributes:
        problem: the place, and the system's message.
    """

    def __init__(self, problem: str, kept: str) -> None:
        super().__init__(f"{problem}; {kept}")
        self.problem = problem


@contextmanager
def full_disk(path: Path, kept: Callable[[], str]) -> Iterator[None]:
    """Turn the system's error on a full disk into one that names the place and what was kept.

    Args:
        path: the file or folder that is written, named where the system names none.
        kept: a function that says what was kept and how to go on; called after the error.

    Raises:
        DiskFull: the disk is full, a quota is used up, or a file is larger than the system allows.
    """
    try:
        yield
    except DiskFull as error:
        raise DiskFull(error.problem, kept()) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFull(f"{error.filename or path}: cannot be written: {error.strerror}", kept()) from None
