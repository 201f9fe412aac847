"""The config.json of an ONNX export: facts that a program needs besides the model and its tokenizer."""

from collections.abc import Mapping
from typing import Any

from bakeoff.generation.generate import never_written
from bakeoff.interop.onnx.graphs import Graph
from bakeoff.interop.onnx.quantization import Quantized
from bakeoff.interop.writing_task import writing_rows
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.writing_head import require_writing
from bakeoff.tasks.rows.inputs import InputFormat


def settings_of(
    run: Run | FinetunedRun, format: InputFormat, kind: str, graphs: Mapping[str, Graph], longest: int
) -> dict[str, Any]:
    """The content of config.json, without measurements.

    Args:
        run: the run to be exported.
        format: the format of its rows.
        kind: encoder, causal, encoder_decoder, or the kind of the run's task.
        graphs: the module of each file.
        longest: the largest length of a row in tokens.
    """
    tokenizer = run.tokenizer
    before, between, after = format.around
    tuned = run if isinstance(run, FinetunedRun) else None
    generates = kind in ("causal", "encoder_decoder") if tuned is None else tuned.task.head == "writing"
    pairs = tuned is not None and tuned.task.input_sides != 1
    if generates:
        end = [tokenizer.separator]
        before, between, after = format.before_source if format.has_source else [tokenizer.opening], [], end
        after = [] if kind == "causal" else end
        pairs = False
    return {
        "form": "onnx",
        "kind": kind,
        **(_interface(*graphs.values()) if len(graphs) == 1 else _interfaces(graphs)),
        "length": longest,
        "truncate": format.truncate,
        "pairs": pairs,
        "before": before,
        "between": between,
        "behind": after,
        "start_last": format.start_last,
        "special_ids": {
            "pad": tokenizer.pad,
            "start": tokenizer.start,
            "separator": tokenizer.separator,
            "mask": tokenizer.mask,
            "unknown": tokenizer.unknown,
        },
        **(_of_writing(run, format) if generates else {}),
        "labels": None if tuned is None else tuned.learned.labels,
    }


def _interface(graph: Graph) -> dict[str, Any]:
    """The inputs and outputs of a file."""
    return {
        "inputs": [{"name": each.name, "axes": list(each.axes)} for each in graph.inputs],
        "outputs": [{"name": name, "axes": list(axes)} for name, axes in graph.outputs],
    }


def _interfaces(graphs: Mapping[str, Graph]) -> dict[str, Any]:
    """The inputs and outputs of several files, by name of the file."""
    return {name.removesuffix(".onnx"): _interface(graph) for name, graph in graphs.items()}


def _of_writing(run: Run | FinetunedRun, format: InputFormat) -> dict[str, Any]:
    """Keys for generation: the prompt, the token that ends a text, and tokens that are never written.

    Those of a fine-tuned run besides: the most tokens of a source with those around it and of a text, and what stands
    before each source, a space at its end.
    """
    tokenizer, recipe = run.tokenizer, run.recipe
    marks = require_writing(recipe).mark_ids(tokenizer)
    banned = set(never_written(tokenizer))
    of_task: dict[str, Any] = {}
    if isinstance(run, FinetunedRun):
        if (rows := writing_rows(run)) is not None:
            of_task = {"longest_source": rows.longest_source, "longest": rows.longest}
        of_task["prefix"] = f"{prefix} " if (prefix := run.task.written.prefix) else ""
        banned |= set(range(tokenizer.size, tokenizer.size + recipe.extra_tokens))
    else:
        banned -= set(marks)
    return {
        "prompt": format.prompt if format.has_source else [],
        "end": tokenizer.separator,
        "never_written": sorted(banned),
        "marks": marks,
        "target_begins": tokenizer.target_ids.start,
        **of_task,
    }


def said(small: Quantized) -> list[str]:
    """Sentences about the accuracy, speed and size of int8."""
    before, after = (size / 1e6 for size in small.bytes)
    figures = "; ".join(f"{each.name} {each.before:.4f} before, {each.after:.4f} after" for each in small.accuracies)
    what = "linear layers and tables" if small.tables else "linear layers alone, since tables lose more"
    return [
        f"int8 of {what}: {figures}",
        f"int8 is {small.speedup:.2f} times as fast as float32 by onnxruntime (one thread, rows of random tokens), "
        f"and {after:.1f} MB of {before:.1f}",
        "in int8 an answer depends a little on the texts beside it, for a batch has one scale; the figures are of "
        "batches of texts of about the same length",
    ]
