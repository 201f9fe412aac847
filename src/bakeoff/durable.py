"""Files that are on the disk whole, or not at all."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file's or folder's content on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: str) -> None:
    """Replace a text file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(content, encoding="utf-8")
    sync(partial)
    partial.replace(path)
