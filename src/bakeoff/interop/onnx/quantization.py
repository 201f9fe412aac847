"""Weights of eight bits, with the loss of accuracy and the gain in speed measured."""

import contextlib
import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.extras import library

LINEAR = ["MatMul", "Gemm"]
"""The ONNX operators of linear layers."""
MOST_LOST = 0.005
"""Largest additional loss of accuracy for which embedding tables are quantized, too: half a point of a metric, or
0.005 nats."""
TURNS = 7
"""Number of times that each model is timed, in turn."""

Feeds = Mapping[str, NDArray[Any]]


class Accuracy(NamedTuple):
    """A figure of the model in float32 and in int8."""

    name: str
    """The name of the figure."""
    before: float
    """The figure in float32."""
    after: float
    """The figure in int8."""
    lower_is_better: bool = False
    """Whether a lower figure is better, as for a loss."""

    @property
    def lost(self) -> float:
        """The loss of int8 in units of the figure; negative: a gain."""
        return self.after - self.before if self.lower_is_better else self.before - self.after


Measure = Callable[[Any, Any], list[Accuracy]]
"""A function from two sessions, float32 and int8, to figures; the first figure decides about the tables."""


class Quantized(NamedTuple):
    """The accuracy, speed and size of a quantized model."""

    accuracies: list[Accuracy]
    """Figures in float32 and in int8."""
    tables: bool
    """Whether embedding tables have eight bits, too; false: linear layers alone."""
    speedup: float
    """Processor time of float32 divided by that of int8, in onnxruntime on one thread, for the same rows."""
    bytes: tuple[int, int]
    """Size of the files in bytes, in float32 and in int8."""


def quantize(
    files: Sequence[Path], opened: Callable[[Sequence[Path]], Any], measure: Measure, rows: Feeds
) -> Quantized:
    """Replace files by ones with eight-bit weights: of linear layers and tables, or of linear layers if tables lose.

    Args:
        files: the model's file, or an encoder's and its decoder's; they are replaced.
        opened: a function that opens such files as one model.
        measure: the function that compares both models.
        rows: the inputs that the models are timed with.
    """
    original, models = opened(files), {}
    for name, kinds in (("linear", LINEAR), ("all", [*LINEAR, "Gather"])):
        made = [file.with_name(f"{name}-{file.name}") for file in files]
        for file, small in zip(files, made, strict=True):
            _write(file, small, kinds)
        session = opened(made)
        models[name] = (made, session, measure(original, session))
    tables = models["all"][2][0].lost <= models["linear"][2][0].lost + MOST_LOST
    made, session, accuracies = models["all" if tables else "linear"]
    slow, fast = _times([original, session], rows)
    sizes = tuple(sum(file.stat().st_size for file in each) for each in (files, made))
    for file, small in zip(files, made, strict=True):
        small.replace(file)
    for small in models["linear" if tables else "all"][0]:
        small.unlink()
    return Quantized(accuracies, tables, slow / fast, (sizes[0], sizes[1]))


def _write(file: Path, made: Path, kinds: Sequence[str]) -> None:
    library("onnx", "onnx")
    quantization = library("onnxruntime.quantization", "onnx")
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # silences a remark about preprocessing, which would change no number
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            quantization.quantize_dynamic(
                str(file), str(made), op_types_to_quantize=list(kinds), weight_type=quantization.QuantType.QInt8
            )
    finally:
        logger.setLevel(level)


def _times(sessions: Sequence[Any], rows: Feeds) -> list[float]:
    """Processor time of each session in seconds, the best of TURNS turns; other programs hardly change it."""
    best = [float("inf")] * len(sessions)
    for _ in range(TURNS):
        for index, session in enumerate(sessions):
            begun = time.process_time()
            session.run(None, dict(rows))
            best[index] = min(best[index], time.process_time() - begun)
    return best


def agreement(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The share of (N, K) rows with the same likeliest output; for K = 1, 1 minus the relative difference."""
    if first.shape[-1] > 1:
        return float((first.argmax(-1) == second.argmax(-1)).mean())
    return 1 - float(np.abs(first - second).mean() / max(float(np.abs(first).mean()), 1e-9))
