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
    """The name of the figure."""
    before: float
    """In float32."""
    after: float
    """In int8."""
    lower_is_better: bool = False
    """Whether a lower figure is better, as for a loss."""

    @property
    def lost(self) -> float:
        """How much int8 has lost."""
        return self.after - self.before if self.lower_is_better else self.before - self.after


Measure = Callable[[Any, Any], list[Accuracy]]
"""Figures of two sessions, float32 and int8, on the user's data; the first one decides."""


class Quantized(NamedTuple):
    """What quantization cost in accuracy and gained in speed and size."""

    accuracies: list[Accuracy]
    """Figures before and after, which say what was lost."""
    tables: bool
    """The embedding's tables have eight bits, too, not linear maps alone."""
    speedup: float
    """How many times as fast as float32 by onnxruntime, one thread, the same rows in turn."""
    bytes: tuple[int, int]
    """Size of the model in float32 and in int8."""


def quantize(
    files: Sequence[Path], opened: Callable[[Sequence[Path]], Any], measure: Measure, rows: Feeds
) -> Quantized:
    """Write eight-bit weights over models: of all maps and tables, or of linear maps alone where tables lose.

    Args:
        files: the model, or an encoder and its decoder, which are replaced.
        opened: what opens such files as one model.
        measure: what both make of the user's data.
        rows: what the models are timed with.
    """
    original, found = opened(files), {}
    for name, kinds in (("linear", LINEAR), ("all", [*LINEAR, "Gather"])):
        made = [file.with_name(f"{name}-{file.name}") for file in files]
        for file, small in zip(files, made, strict=True):
            _write(file, small, kinds)
        session = opened(made)
        found[name] = (made, session, measure(original, session))
    tables = found["all"][2][0].lost <= found["linear"][2][0].lost + MOST_LOST
    made, session, accuracies = found["all" if tables else "linear"]
    slow, fast = _times([original, session], rows)
    sizes = tuple(sum(file.stat().st_size for file in each) for each in (files, made))
    for file, small in zip(files, made, strict=True):
        small.replace(file)
    for small in found["linear" if tables else "all"][0]:
        small.unlink()
    return Quantized(accuracies, tables, slow / fast, (sizes[0], sizes[1]))


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
    """Seconds of processor time of each, which other programs hardly change, the best of several turns."""
    best = [float("inf")] * len(sessions)
    for _ in range(TURNS):
        for place, session in enumerate(sessions):
            begun = time.process_time()
            session.run(None, dict(rows))
            best[place] = min(best[place], time.process_time() - begun)
    return best


def agreement(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The share of (N, K) rows whose likeliest output is the same; of one output 1 less the relative difference."""
    if first.shape[-1] > 1:
        return float((first.argmax(-1) == second.argmax(-1)).mean())
    return 1 - float(np.abs(first - second).mean() / max(float(np.abs(first).mean()), 1e-9))
