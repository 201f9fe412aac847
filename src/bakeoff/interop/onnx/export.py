"""`--to onnx`: a run as a model.onnx with its tokenizer, compared with torch before the folder has its name."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from bakeoff.errors import UserError
from bakeoff.interop.appearing import appearing, library, require_free
from bakeoff.interop.exported import Exported
from bakeoff.interop.onnx.conversion import CLOSE, check_file, convert, largest_difference, open_session
from bakeoff.interop.onnx.graphs import Graph, OfCausal, OfEncoder, OfHead
from bakeoff.interop.onnx.measuring import by_agreement, by_loss, by_metric, random_rows, rows_of
from bakeoff.interop.onnx.padded_rows import with_padded_rows
from bakeoff.interop.onnx.quantization import Measure, Quantized, quantize
from bakeoff.interop.onnx.readme import readme
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import LinearHead
from bakeoff.tasks.rows.inputs import InputFormat

MODEL = "model.onnx"
"""The file of the model."""


class Source(NamedTuple):
    """What is exported."""

    graph: Graph
    """The module."""
    run: Run | FinetunedRun
    """The run that it comes from."""
    format: InputFormat
    """Of its rows."""
    kind: str
    """encoder, causal, or the kind of its task."""
    vocabulary: int
    """V, the ids that its table has."""


def export(run: Path, out: Path, *, quantize: str | None = None, measure_on: Path | None = None) -> Exported:
    """Write model.onnx, tokenizer.json, config.json and a README.md that says how they are used.

    Args:
        run: a pre-trained encoder or causal model, or a fine-tuned run.
        out: the folder to make.
        quantize: int8: weights of eight bits, with what they lose and gain, measured.
        measure_on: labelled rows for a fine-tuned run, else texts; absent: random rows.

    Raises:
        UserError: no such run; a library is missing; the model has no such form; onnxruntime computes something else.
    """
    if quantize not in (None, "int8"):
        raise UserError(f"--quantize {quantize}: no such kind of weights; there is int8")
    if measure_on is not None and quantize is None:
        raise UserError("--measure-on: nothing to measure without --quantize int8")
    require_free(out)
    for name in ("onnx", "onnxscript", "onnxruntime"):
        library(name, "onnx")
    source = _opened(run)
    measure = None if quantize is None else _measure(source, measure_on)
    longest = min(source.format.length, source.run.recipe.model.longest_input or source.format.length)
    with appearing(out) as folder:
        file = folder / MODEL
        convert(source.graph, file, str(run))
        check_file(file, source.graph, str(run))
        shortest = 2 if source.format.has_source else 1  # whose encoder reads rows without [CLS]
        difference = largest_difference(source.graph, open_session(file), source.vocabulary, longest, shortest)
        if not difference <= CLOSE:
            raise UserError(
                f"{run}: onnxruntime computes something else than torch (a difference of {difference:.1e} of the "
                f"largest number, {CLOSE:.0e} is allowed), so nothing is written"
            )
        small = None if measure is None else _quantized(source, file, measure, longest)
        source.run.tokenizer.save(folder / "tokenizer.json")
        settings = _settings(source, longest, difference, small)
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")
        (folder / "README.md").write_text(readme(source.run.recipe.name, settings), encoding="utf-8")
    remarks = [f"onnxruntime and torch differ by {difference:.1e} of the largest number"]
    if source.run.tokenizer.special_ids.size and source.format.truncate == "windows":
        remarks.append("texts longer than a row: bakeoff reads them in windows, the README's lines cut them")
    if small is not None:
        remarks += _said(small)
    return Exported(
        out, "onnx", f'onnxruntime.InferenceSession("{out / MODEL}")', difference if small is None else None, remarks
    )


def _opened(run: Path) -> Source:
    """The module to be exported.

    Raises:
        UserError: there is no such run, or it has no such form.
    """
    if FinetunedRun.at(run):
        tuned = FinetunedRun.open(run)
        head, format, task = tuned.load(), tuned.format(), tuned.learned
        if not isinstance(head, LinearHead):
            raise UserError(f"{run}: writes texts, which is a loop around a model and no graph; --to hf can take it")
        graph: Graph = OfHead(head, format.segments, tuned.task.head == "tokens")
        return Source(_fixed(graph), tuned, format, task.config.kind, len(head.model.embedding.table))
    opened = Run.open_trained(run)
    recipe, module = opened.recipe, opened.load()
    format = InputFormat(opened.tokenizer, recipe, recipe.input.length)
    if recipe.model.sequence_to_sequence:
        raise UserError(
            f"{run}: an encoder with a decoder is not written as ONNX before it is fine-tuned to labels; --to hf can "
            "take it"
        )
    causal = recipe.model.causal and module.writing is not None
    graph = OfCausal(module, str(run)) if causal else OfEncoder(module, format.segments)
    return Source(_fixed(graph), opened, format, "causal" if causal else "encoder", len(module.model.embedding.table))


def _fixed(graph: Graph) -> Graph:
    """The same in evaluation, without gradients and without shapes that depend on what a row holds."""
    with_padded_rows(graph)
    nn.Module.eval(graph)
    graph.requires_grad_(False)
    return graph


def _measure(source: Source, file: Path | None) -> Measure:
    longest = source.format.length
    if file is not None and isinstance(source.run, FinetunedRun):
        return by_metric(source.run, file)
    if file is not None:
        return by_loss(source.graph, rows_of(source.graph, file, source.format), source.run.tokenizer, file.name)
    return by_agreement(source.graph, random_rows(source.graph, source.vocabulary, longest), "random tokens")


def _quantized(source: Source, file: Path, measure: Measure, longest: int) -> Quantized:
    return quantize(file, measure, random_rows(source.graph, source.vocabulary, longest, 16)[0])


def _said(small: Quantized) -> list[str]:
    """What int8 has lost and gained, in words."""
    before, after = (size / 1e6 for size in small.bytes)
    figures = "; ".join(f"{each.name} {each.before:.4f} before, {each.after:.4f} after" for each in small.accuracies)
    what = "linear maps and tables" if small.tables else "linear maps alone, since tables lose more"
    return [
        f"int8 of {what}: {figures}",
        f"int8 is {small.speedup:.2f} times as fast as float32 by onnxruntime (one thread, rows of random tokens), "
        f"and {after:.1f} MB of {before:.1f}",
    ]


def _settings(source: Source, longest: int, difference: float, small: Quantized | None) -> dict[str, Any]:
    """The content of config.json."""
    tokenizer, format = source.run.tokenizer, source.format
    before, between, behind = format.around
    tuned = source.run if isinstance(source.run, FinetunedRun) else None
    pairs = source.kind in ("question_answering", "choice") or (tuned is not None and (tuned.task.input_sides or 1) > 1)
    return {
        "form": "onnx",
        "kind": source.kind,
        "inputs": [{"name": each.name, "axes": list(each.axes)} for each in source.graph.inputs],
        "outputs": [{"name": name, "axes": list(axes)} for name, axes in source.graph.outputs],
        "length": longest,
        "pairs": pairs,
        "before": before,
        "between": between,
        "behind": behind,
        "start_last": format.start_last,
        "special_ids": {
            "pad": tokenizer.pad,
            "start": tokenizer.start,
            "separator": tokenizer.separator,
            "mask": tokenizer.mask,
            "unknown": tokenizer.unknown,
        },
        "opening": tokenizer.opening,
        "labels": None if tuned is None else tuned.learned.labels,
        "largest_difference": difference,
        "int8": None if small is None else _said(small),
    }
