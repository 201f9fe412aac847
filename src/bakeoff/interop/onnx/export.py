"""`--to onnx`: a run as ONNX with its tokenizer, compared with torch before the folder gets its name."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import nn

from bakeoff.errors import UserError
from bakeoff.extras import library
from bakeoff.generation.writer import next_token_head
from bakeoff.interop.export import Exported
from bakeoff.interop.onnx.conversion import CLOSE, check_file, convert, largest_difference, open_session
from bakeoff.interop.onnx.graphs import Graph, OfEncoder, OfHead
from bakeoff.interop.onnx.measuring import by_agreement, by_loss, by_metric, random_rows, rows_of, texts_of
from bakeoff.interop.onnx.padded_rows import with_padded_rows
from bakeoff.interop.onnx.quantization import Measure, Quantized, quantize
from bakeoff.interop.onnx.readme import OF_ENCODER, readme
from bakeoff.interop.onnx.settings import said, settings_of
from bakeoff.interop.onnx.steps import with_steps
from bakeoff.interop.onnx.writing_graphs import OfDecoder, OfSource
from bakeoff.interop.onnx.written_rows import by_targets, empty, open_all, rows_of_ids, rows_of_task
from bakeoff.interop.writing_task import remarks_of_beams
from bakeoff.models.model import Model
from bakeoff.objectives.heads import Head
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import LinearHead
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.unfinished import require_free, unfinished

MODEL, ENCODER, DECODER = "model.onnx", "encoder.onnx", "decoder.onnx"
"""Names of files: a whole model's, or an encoder's and a decoder's."""


class ExportedModel(NamedTuple):
    """A run, prepared for export."""

    graphs: dict[str, Graph]
    """The module of each file."""
    run: Run | FinetunedRun
    """The run to be exported."""
    format: InputFormat
    """The format of rows: how texts become tokens."""
    kind: str
    """encoder, causal or encoder_decoder of a pre-trained run, or the kind of a fine-tuned run's task."""
    vocabulary: int
    """V, the number of rows of the table of tokens."""


def export(run: Path, out: Path, *, quantize: str | None = None, measure_on: Path | None = None) -> Exported:
    """Write the model, tokenizer.json, config.json and a README.md that shows how to use them.

    Args:
        run: a pre-trained or a fine-tuned run.
        out: the folder to make.
        quantize: int8 stores weights in eight bits and measures what is lost in quality and gained in speed; None:
            float32.
        measure_on: file to measure int8 on: labelled rows for a fine-tuned run, otherwise texts, one per line; None:
            random rows.

    Raises:
        UserError: there is no such run; a library is missing; ONNX cannot express the model; onnxruntime computes other
            numbers than torch.
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
    of_task = remarks_of_beams(source.run) if isinstance(source.run, FinetunedRun) else []
    with unfinished(out) as folder:
        difference = max(_written(source, folder / name, run, longest) for name in source.graphs)
        small = None if measure is None else _quantized(source, folder, measure, longest)
        _save_tokenizer(source.run.tokenizer, folder)
        settings = settings_of(source.run, source.format, source.kind, source.graphs, longest)
        settings |= {"largest_difference": difference, "int8": None if small is None else said(small)}
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")
        shown = source.run.task.prints_outputs if isinstance(source.run, FinetunedRun) else OF_ENCODER
        (folder / "README.md").write_text(readme(source.run.recipe.name, settings, shown, of_task), encoding="utf-8")
    remarks = [f"onnxruntime and torch differ by {difference:.1e} of the largest number", *of_task]
    if source.run.tokenizer.special_ids.size and source.format.truncate == "windows":
        remarks.append("texts longer than a row: bakeoff reads them in windows, the README's lines cut them")
    if small is not None:
        remarks += said(small)
    loads = ", ".join(f'onnxruntime.InferenceSession("{out / name}")' for name in source.graphs)
    return Exported(out, "onnx", loads, difference if small is None else None, remarks)


def _written(source: ExportedModel, file: Path, run: Path, longest: int) -> float:
    """Write one of the files and return the largest difference between onnxruntime and torch, see `CLOSE`.

    Raises:
        UserError: the difference is too large, or the graph cannot be written.
    """
    graph = source.graphs[file.name]
    convert(graph, file, str(run))
    check_file(file, graph, str(run))
    labels_of_both = source.format.has_source and len(source.graphs) == 1
    # The encoder of these models reads rows without [CLS]: shorter rows would be padding alone, whose outputs are not
    # defined.
    shortest = 3 if labels_of_both else 1
    difference = largest_difference(graph, open_session(file), source.vocabulary, longest, shortest)
    if not difference <= CLOSE:
        raise UserError(
            f"{run}: onnxruntime computes something else than torch (a difference of {difference:.1e} of the "
            f"largest number, {CLOSE:.0e} is allowed), so nothing is written"
        )
    return difference


def _save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json, and target_tokenizer.json if targets have their own vocabulary."""
    if isinstance(tokenizer, TwoVocabularies):
        tokenizer.target.save(folder / "target_tokenizer.json")
        tokenizer = tokenizer.source
    tokenizer.save(folder / "tokenizer.json")


def _opened(run: Path) -> ExportedModel:
    """The run and its modules, prepared for export.

    Raises:
        UserError: there is no such run, or ONNX cannot express its model.
    """
    if FinetunedRun.at(run):
        tuned = FinetunedRun.open(run)
        head, format, kind = tuned.load(), tuned.format(), tuned.learned.config.kind
        if isinstance(head, WritingHead):
            graphs = _writing(head.model, head.writer, head.reads_prefix, str(run))
        else:
            assert isinstance(head, LinearHead)
            graphs = {MODEL: OfHead(head, format.segments, tuned.task.head == "tokens")}
        return ExportedModel(_fixed(graphs), tuned, format, kind, head.model.vocabulary)
    opened = Run.open_trained(run)
    recipe, module = opened.recipe, opened.load()
    format = InputFormat(opened.tokenizer, recipe, recipe.input.length)
    kind = "encoder"
    if recipe.model.causal and module.writing is not None:
        kind = "encoder_decoder" if recipe.model.sequence_to_sequence else "causal"
        graphs = _writing(module.model, next_token_head(module), module.reads_prefix, str(run))
    else:
        graphs = {MODEL: OfEncoder(module, format.segments)}
    return ExportedModel(_fixed(graphs), opened, format, kind, module.model.vocabulary)


def _writing(model: Model, writer: Head, reads_prefix: bool, where: str) -> dict[str, Graph]:
    """The graphs of a model that generates text."""
    if not model.config.sequence_to_sequence:
        return {MODEL: OfDecoder(model, writer, reads_prefix, where)}
    return {ENCODER: OfSource(model), DECODER: OfDecoder(model, writer, reads_prefix, where)}


def _fixed(graphs: dict[str, Graph]) -> dict[str, Graph]:
    """The graphs in evaluation mode, without gradients and without shapes that depend on the content of rows."""
    for graph in graphs.values():
        with_padded_rows(graph)
        with_steps(graph)
        nn.Module.eval(graph)
        graph.requires_grad_(False)
    return graphs


def _measure(source: ExportedModel, file: Path | None) -> Measure:
    graph, longest = list(source.graphs.values())[-1], source.format.length
    tuned = source.run if isinstance(source.run, FinetunedRun) else None
    if isinstance(graph, OfDecoder) and (tuned is not None or graph.sources or graph.reads_prefix):
        if file is not None and tuned is not None:
            rows = rows_of_task(tuned, file)
            return by_targets(graph, rows, f"{len(rows):,} rows of {file.name}", True)
        if file is None:
            draw, what = np.random.default_rng(2), "random tokens"
            ids = [draw.integers(0, source.vocabulary, min(128, longest) // 2) for _ in range(32)]
        else:
            ids, what = source.format.ids(texts_of(file)), f"the texts of {file.name}"
        # A text as a source has no known target, and so no loss.
        has_loss = file is not None and not graph.sources
        return by_targets(graph, rows_of_ids(ids, source.format, graph.reads_prefix), what, has_loss)
    if file is not None and tuned is not None:
        return by_metric(tuned, file)
    if file is not None:
        return by_loss(graph, rows_of(graph, file, source.format), source.run.tokenizer, file.name)
    return by_agreement(graph, random_rows(graph, source.vocabulary, longest), "random tokens")


def _quantized(source: ExportedModel, folder: Path, measure: Measure, longest: int) -> Quantized:
    files = [folder / name for name in source.graphs]
    graph = list(source.graphs.values())[-1]
    if isinstance(graph, OfDecoder):
        ids = np.random.default_rng(2).integers(0, source.vocabulary, (16, min(128, longest)))
        read = {"source_ids": ids} if graph.sources else {}
        return quantize(files, open_all, measure, {"input_ids": ids, **read, **empty(graph.inputs, 16)})
    return quantize(files, open_all, measure, random_rows(graph, source.vocabulary, longest, 16)[0])
