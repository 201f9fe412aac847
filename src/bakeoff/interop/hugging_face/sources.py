"""Sources of models to import: folders, and names on the Hub, from which data is fetched and never code."""

import re
from pathlib import Path

from bakeoff.errors import UserError
from bakeoff.extras import missing

NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
PATTERNS = ["*.safetensors", "*.safetensors.index.json", "*.json", "vocab.txt", "merges.txt", "*.model"]
"""Patterns of the files that are fetched."""


def folder_of(source: str | Path) -> Path:
    """The folder of a model; a model on the Hub (OWNER/NAME or OWNER/NAME@REVISION) is fetched into the Hub's cache.

    Raises:
        UserError: there is no such folder and no such model, or huggingface_hub is not installed.
    """
    path = Path(source).expanduser()
    if path.exists() or not NAME.fullmatch(str(source)) or str(source).startswith((".", "/")):
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing(f"{source}: no such folder; models on the Hub need huggingface_hub", "hub") from None
    name, _, revision = str(source).partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=PATTERNS))
    except Exception as error:  # errors of the library and of the network have no common class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"{source}: no such folder, and the Hub does not give it ({reason}); check the name and the network"
        ) from None
