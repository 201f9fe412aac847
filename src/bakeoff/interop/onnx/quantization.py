"""Weights of eight bits: what they cost in accuracy and gain in speed, measured, and what is kept by that."""

import contextlib
import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.interop.appearing import library
from bakeoff.interop.onnx.conversion import open_session

LINEAR = ["MatMul", "Gemm"]
"""The operators of linear maps."""
MOST_LOST = 0.005
"""So much more may the tables of the embedding lose than linear maps alone: half a point of a metric, 0.005 nats."""
TURNS = 7
"""Times that each model is timed, in turn."""

Feeds = Mapping[str, NDArray[Any]]


class Accuracy(NamedTuple):
    """A figure of the model in float32 and of one in int8."""

    name: str
    """What it is."""
    before: float
    """In float32."""
    after: float
    """In int8."""
    lower_is_better: bool = False
    """Such as a loss."""

    @property
    def lost(self) -> float:
        """How much int8 has lost."""
        return self.after - self.before if self.lower_is_better else self.before - self.after


Measure = Callable[[Any, Any], list[Accuracy]]
"""Figures of two sessions, float32 and int8, on the user's data; the first one decides."""


class Quantized(NamedTuple):
    """What became of quantization."""

    accuracies: list[Accuracy]
    """What was lost."""
    tables: bool
    """The embedding's tables have eight bits, too, not linear maps alone."""
    speedup: float
    """How many times as fast as float32 by onnxruntime, one thread, the same rows in turn."""
    bytes: tuple[int, int]
    """Size of the model in float32 and in int8."""


def quantize(file: Path, measure: Measure, rows: Feeds) -> Quantized:
    """Write eight-bit weights over a model.onnx: of all maps and tables, or of linear maps alone where tables lose.

    Args:
        file: the model, which is replaced.
        measure: what both make of the user's data.
        rows: what the models are timed with.
    """
    original, found = open_session(file), {}
    for name, kinds in (("linear", LINEAR), ("all", [*LINEAR, "Gather"])):
        made = file.with_name(f"{name}.onnx")
        _write(file, made, kinds)
        session = open_session(made)
        found[name] = (made, session, measure(original, session))
    tables = found["all"][2][0].lost <= found["linear"][2][0].lost + MOST_LOST
    made, session, accuracies = found["all" if tables else "linear"]
    slow, fast = _times([original, session], rows)
    sizes = file.stat().st_size, made.stat().st_size
    made.replace(file)
    found["linear" if tables else "all"][0].unlink()
    return Quantized(accuracies, tables, slow / fast, sizes)


def _write(file: Path, made: Path, kinds: Sequence[str]) -> None:
    library("onnx", "onnx")
    quantization = library("onnxruntime.quantization", "onnx")
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # a remark about a step before it, which changes no number
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            quantization.quantize_dynamic(
                str(file), str(made), op_types_to_quantize=list(kinds), weight_type=quantization.QuantType.QInt8
            )
    finally:
        logger.setLevel(level)


def _times(sessions: Sequence[Any], rows: Feeds) -> list[float]:
    """Seconds of each, the best of several turns."""
    best = [float("inf")] * len(sessions)
    for _ in range(TURNS):
        for place, session in enumerate(sessions):
            begun = time.perf_counter()
            session.run(None, dict(rows))
            best[place] = min(best[place], time.perf_counter() - begun)
    return best


def agreement(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The share of (N, K) rows whose likeliest output is the same; of one output 1 less the relative difference."""
    if first.shape[-1] > 1:
        return float((first.argmax(-1) == second.argmax(-1)).mean())
    return 1 - float(np.abs(first - second).mean() / max(float(np.abs(first).mean()), 1e-9))
