"""The user's cache, whose content can be made again at any time."""

import os
from pathlib import Path


def user_cache(kind: str) -> Path:
    """The folder of the user's cache for things of a kind, which need not exist yet.

    A relative $XDG_CACHE_HOME counts for none, as the XDG Base Directory Specification has it: the present folder is no
    user's cache.

    Raises:
        RuntimeError: the user has no home folder.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return Path(named if named.is_absolute() else Path.home() / ".cache", "bakeoff", kind)
