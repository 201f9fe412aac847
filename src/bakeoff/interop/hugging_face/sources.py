"""Where a model comes from: a folder, or a name on the Hub, of which data alone is fetched and never code."""

import re
from pathlib import Path

from bakeoff.errors import UserError

NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
PATTERNS = ["*.safetensors", "*.safetensors.index.json", "*.json", "vocab.txt", "merges.txt", "*.model"]
"""Files that are fetched."""


def folder_of(source: str | Path) -> Path:
    """The folder of a model; a name on the Hub (OWNER/NAME, with @REVISION or not) is fetched into its cache.

    Raises:
        UserError: no such folder and no such name, or huggingface_hub is not installed.
    """
    path = Path(source).expanduser()
    if path.exists() or not NAME.fullmatch(str(source)) or str(source).startswith((".", "/")):
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UserError(
            f"{source}: no such folder; names on the Hub are fetched with huggingface_hub, which is not here; run "
            'pip install "bakeoff[hub]"'
        ) from None
    name, _, revision = str(source).partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=PATTERNS))
    except Exception as error:  # of the library, of the network
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(
            f"{source}: no such folder, and not to be had from the Hub ({reason}); is the name right, and the network "
            "there?"
        ) from None
