"""JSON files of exports, formatted as transformers formats its own."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, values: Any) -> None:
    """Write values with sorted keys, so that equal values give equal files."""
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
