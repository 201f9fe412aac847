"""From a module to a model.onnx, compared with the module before anything else is done with it."""

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
from bakeoff.interop.appearing import library
from bakeoff.interop.onnx.graphs import Graph, Input
from bakeoff.interop.onnx.steps import at_least_two_steps, forget_dispatch
from bakeoff.signals import kept_interrupts

CLOSE = 1e-4
"""The largest difference from torch, as a share of the largest number of an output."""
OPSET = 18
"""The version of the operators."""
LONGEST_COMPARED = 512
"""Rows of more tokens are not compared: attention to all of them would take gigabytes."""


def convert(graph: Graph, file: Path, what: str) -> None:
    """Write a graph as a model.onnx whose rows and lengths may be any.

    Raises:
        UserError: a library is missing, or an operation of the model has no counterpart.
    """
    for name in ("onnx", "onnxscript"):
        library(name, "onnx")
    sizes = {"batch": 2, "length": at_least_two_steps(graph), "past": 7, "source": 9}
    names = {axis for each in graph.inputs for axis in each.axes if isinstance(axis, str)}
    dynamic = {axis: torch.export.Dim(axis) for axis in names}
    shapes: list[Any] = [
        {place: dynamic[axis] for place, axis in enumerate(each.axes) if isinstance(axis, str)} for each in graph.inputs
    ]
    if any(each.name.startswith("past.") for each in graph.inputs):
        shapes = [shapes[0], tuple(shapes[1:])]  # of an argument, and of those behind its star
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
    """Have the library look for mistakes, of a file, since models with much weight lie in several; and see its shapes.

    Raises:
        UserError: it holds for one number of rows or tokens alone.
    """
    library("onnx", "onnx")
    import onnx

    onnx.checker.check_model(str(file), full_check=True)
    found = {
        each.name: each.type.tensor_type.shape.dim for each in onnx.load(file, load_external_data=False).graph.input
    }
    for each in graph.inputs:
        for axis, size in zip(each.axes, found[each.name], strict=True):
            if isinstance(axis, str) and not size.dim_param:
                raise UserError(
                    f"{what}: what this model does depends on the {axis} of its rows, step by step, which a graph has "
                    "no way to say; --to hf can take it"
                )


def open_session(file: Path) -> Any:
    """The model in onnxruntime, on one thread."""
    onnxruntime = library("onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def drawn(
    inputs: Sequence[Input], sizes: Mapping[str, int], vocabulary: int, draw: np.random.Generator
) -> list[Tensor]:
    """Random inputs of that size; the later half of the last of several rows is padding."""
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
    """How much onnxruntime and torch differ on random rows: of 1, 2, an odd number, and the most tokens; with padding.

    As a share of the largest number of an output. What stands at padding is not compared.
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
            given = drawn(graph.inputs, sizes, vocabulary, draw)
            wanted = graph(*given)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            feeds = {each.name: tensor.numpy() for each, tensor in zip(graph.inputs, given, strict=True)}
            found = session.run(None, feeds)
            for (_, axes), one, other in zip(graph.outputs, wanted, found, strict=True):
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
    """Without the exporter's remarks about itself."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
