"""The user's cache, whose content can be made again at any time."""

import os
from pathlib import Path


def user_cache(kind: str) -> Path:
    """The folder of the user's cache for things of a kind, which need not exist yet.

    Raises:
        RuntimeError: the user has no home folder.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "bakeoff", kind)
