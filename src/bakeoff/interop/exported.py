"""The result of an export."""

from pathlib import Path
from typing import NamedTuple


class Exported(NamedTuple):
    """A run in the form of another tool, reloaded and compared before it was given its name."""

    path: Path
    """The folder that was made."""
    form: str
    """hf, onnx, sentence-transformers or gguf."""
    loads_with: str
    """A line of Python or shell that loads the export."""
    largest_difference: float | None
    """Largest absolute difference between the numbers of the run and of the export for the same rows; None: the
    library to compare with is not installed."""
    remarks: list[str]
    """Sentences for the user: what the export leaves out, and what was not compared."""
