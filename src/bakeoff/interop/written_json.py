"""JSON files of exports, all in the form that transformers gives its own."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, values: Any) -> None:
    """Write values with sorted keys, so that the same values are the same file."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
