"""The user's cache, whose content can be made again at any time."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def user_cache(kind: str) -> Path:
    """The folder of the user's cache for things of a kind, which need not exist yet.

    A relative $XDG_CACHE_HOME counts for none, as the XDG Base Directory Specification has it: the present folder is no
    user's cache.

    Raises:
        RuntimeError: the user has no home folder.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return Path(named if named.is_absolute() else Path.home() / ".cache", "bakeoff", kind)


def cached(kind: str, name: str) -> dict[str, Any]:
    """The values that the user's cache has under a name; empty where there are none, or they cannot be read."""
    try:
        values = json.loads((user_cache(kind) / f"{name}.json").read_bytes())
    except (OSError, ValueError, RecursionError, RuntimeError):
        return {}
    return values if isinstance(values, dict) else {}


def cache(kind: str, name: str, values: dict[str, Any]) -> None:
    """Keep values under a name, if the cache can be written; of two processes at a time one's values are kept."""
    with contextlib.suppress(OSError, RuntimeError):
        store = user_cache(kind) / f"{name}.json"
        store.parent.mkdir(parents=True, exist_ok=True)
        partial = store.with_name(f".{store.name}.{os.getpid()}")
        partial.write_text(json.dumps(values), encoding="utf-8")
        partial.replace(store)
