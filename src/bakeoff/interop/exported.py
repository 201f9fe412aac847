"""What an export has made."""

from pathlib import Path
from typing import NamedTuple


class Exported(NamedTuple):
    """A run in the form of another tool, reloaded and compared before it was given its name."""

    path: Path
    """The folder."""
    form: str
    """hf, onnx, sentence-transformers or gguf."""
    loads_with: str
    """The line of Python or of a shell that loads it."""
    largest_difference: float | None
    """The largest difference of two numbers that both sides have computed of the same texts; None: nothing to compare
    with on this machine."""
    remarks: list[str]
    """What the export leaves out, in words."""
