"""Results as values for JSON, and answers that hold them."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from fastapi.responses import JSONResponse
from torch import Tensor

from bakeoff.display.text import visible

_DIGITS = 7
"""Significant digits of a number, as float32 has; further digits depend on the other texts of a batch."""


class JsonLine(JSONResponse):
    """An answer as one line of JSON, which ends where a shell's next prompt begins."""

    def render(self, content: Any) -> bytes:
        """The line in bytes."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def plain(value: Any) -> Any:
    """A value for JSON: arrays, named tuples and records as lists and mappings, numbers that are not finite as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Tensor):
        return plain(value.detach().cpu().float().numpy())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if isinstance(value, Set):
        return sorted(map(plain, value))
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    return visible(str(value))
