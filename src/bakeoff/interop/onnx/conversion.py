"""Conversion of a module to ONNX, and its comparison with the module."""

import contextlib
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.extras import library
from bakeoff.interop.onnx.graphs import Graph, Input
from bakeoff.interop.onnx.steps import at_least_two_steps, forget_dispatch
from bakeoff.signals import kept_interrupts

CLOSE = 1e-4
"""Largest allowed difference from torch, as a share of an output's largest absolute value."""
OPSET = 18
"""The version of ONNX's operator set."""
LONGEST_COMPARED = 512
"""The longest compared rows in tokens; full attention over longer rows would take gigabytes."""


def convert(graph: Graph, file: Path, what: str) -> None:
    """Write a graph to `file` with a free number of rows and free lengths; `what` names the run in errors.

    Raises:
        UserError: a library is missing, or ONNX lacks an operation of the model.
    """
    for name in ("onnx", "onnxscript"):
        library(name, "onnx")
    sizes = {"batch": 2, "length": at_least_two_steps(graph), "past": 7, "source": 9}
    names = {axis for each in graph.inputs for axis in each.axes if isinstance(axis, str)}
    dynamic = {axis: torch.export.Dim(axis) for axis in names}
    shapes: list[Any] = [
        {index: dynamic[axis] for index, axis in enumerate(each.axes) if isinstance(axis, str)} for each in graph.inputs
    ]
    if any(each.name.startswith("past.") for each in graph.inputs):
        shapes = [shapes[0], tuple(shapes[1:])]  # forward(input_ids, *tensors) takes the rest as one tuple
    examples = drawn(graph.inputs, sizes, 100, np.random.default_rng(0))
    failed: Exception | None = None
    forget_dispatch()
    with _quiet(), kept_interrupts():
        try:
            program = torch.onnx.export(
                graph,
                tuple(examples),
                dynamo=True,
                verbose=False,
                opset_version=OPSET,
                dynamic_shapes=tuple(shapes),
                input_names=[each.name for each in graph.inputs],
                output_names=[name for name, _ in graph.outputs],
            )
            assert program is not None
            program.save(str(file), external_data=None)
        except Exception as error:
            failed = error
    forget_dispatch()
    if failed is not None:
        lines = [line.strip() for line in str(failed.__cause__ or failed).splitlines() if line.strip()]
        raise UserError(
            f"{what}: an operation of this model cannot be written as ONNX "
            f"({(lines or ['no reason given'])[0][:160]}); --to hf can write it"
        )


def check_file(file: Path, graph: Graph, what: str) -> None:
    """Check a file with onnx, and that its rows and lengths are free; `what` names the run in errors.

    onnx gets the path, because a large model's weights lie in further files.

    Raises:
        UserError: the graph is valid for one number of rows or one length alone.
    """
    library("onnx", "onnx")
    import onnx

    onnx.checker.check_model(str(file), full_check=True)
    shapes = {
        each.name: each.type.tensor_type.shape.dim for each in onnx.load(file, load_external_data=False).graph.input
    }
    for each in graph.inputs:
        for axis, size in zip(each.axes, shapes[each.name], strict=True):
            if isinstance(axis, str) and not size.dim_param:
                raise UserError(
                    f"{what}: the steps of this model depend on the {axis} of its rows, which an ONNX graph cannot "
                    "express; --to hf can take it"
                )


def open_session(file: Path) -> Any:
    """An onnxruntime session of the model on one CPU thread."""
    onnxruntime = library("onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def drawn(
    inputs: Sequence[Input], sizes: Mapping[str, int], vocabulary: int, draw: np.random.Generator
) -> list[Tensor]:
    """Random inputs of the sizes of axes in `sizes`; with several rows, the second half of the last row is padding."""
    made: list[NDArray[Any]] = []
    for each in inputs:
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in each.axes]
        if each.name in ("input_ids", "past_ids"):
            made.append(draw.integers(0, vocabulary, shape))
        elif each.name.endswith("attention_mask"):
            mask = np.ones(shape, np.int64)
            if shape[0] > 1:
                mask[-1, (shape[1] + 1) // 2 :] = 0
            made.append(mask)
        elif each.integer:
            made.append(draw.integers(0, 2, shape))
        else:
            made.append(draw.standard_normal(shape).astype(np.float32))
    return [torch.from_numpy(each) for each in made]


@torch.inference_mode()
def largest_difference(graph: Graph, session: Any, vocabulary: int, longest: int, shortest: int = 1) -> float:
    """Largest difference between onnxruntime and torch, as a share of an output's largest absolute value.

    The rows are random: of 1, 2, an odd number and the largest number of tokens, some with padding. Outputs at padding
    are not compared.

    Args:
        graph: the module.
        session: the file's session in onnxruntime.
        vocabulary: V, the upper bound of ids.
        longest: the largest length of a row, of which at most LONGEST_COMPARED are used.
        shortest: the smallest length of a row.

    Returns:
        Infinity where shapes differ, or a number is not finite.
    """
    draw, worst = np.random.default_rng(1), 0.0
    longest = min(longest, LONGEST_COMPARED)
    past = any("past" in each.axes for each in graph.inputs)
    for rows, length in ((1, 1), (3, 2), (2, min(17, longest)), (1, longest), (4, min(8, longest))):
        length = max(length, shortest)
        for before in (0, 1, 11) if past else (0,):
            if before and before + length > longest:
                continue
            sizes = {"batch": rows, "length": length, "past": before, "source": 1 + (5 * length) % min(23, longest)}
            tensors = drawn(graph.inputs, sizes, vocabulary, draw)
            wanted = graph(*tensors)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            feeds = {each.name: tensor.numpy() for each, tensor in zip(graph.inputs, tensors, strict=True)}
            outputs = session.run(None, feeds)
            for (_, axes), one, other in zip(graph.outputs, wanted, outputs, strict=True):
                right = one.numpy()
                if right.shape != other.shape:
                    return float("inf")
                if "length" in axes and "attention_mask" in feeds:
                    kept = feeds["attention_mask"].astype(bool)
                    right, other = (np.moveaxis(each, axes.index("length"), 1)[kept] for each in (right, other))
                if right.size:
                    scale = max(float(np.abs(right).max()), 1e-6)
                    difference = float(np.abs(right - other).max()) / scale
                    worst = max(worst, difference if np.isfinite(difference) else float("inf"))
    return worst


@contextlib.contextmanager
def _quiet() -> Any:
    """Silence the exporter's log messages, warnings and prints."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
