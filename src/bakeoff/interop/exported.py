"""What is said of an export, and the form of the JSON in its folder."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Exported(NamedTuple):
    """An export of a run, which was reloaded and compared before its folder got its name."""

    path: Path
    """The folder that was made."""
    form: str
    """The form of the export: hf, onnx, sentence-transformers or gguf."""
    loads_with: str
    """A line of Python or shell that loads the export."""
    largest_difference: float | None
    """Largest difference between the outputs of the run and of the export for the same rows: absolute for hf, a share
    of the largest number for onnx and sentence-transformers. None: outputs were not compared (gguf, int8, or the
    library to compare with is not installed)."""
    remarks: list[str]
    """Sentences for the user: what the export leaves out, and what was not compared."""


def write_json(path: Path, values: Any) -> None:
    """Write values as transformers formats its files, with sorted keys, so that equal values give equal files."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
