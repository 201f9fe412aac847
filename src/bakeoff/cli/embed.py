"""`bakeoff embed`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Device, Errors, Precision
from bakeoff.cli.shared.output_files import require_out, save_records
from bakeoff.cli.shared.texts import Blank, TextColumn, TextsFile, texts_of
from bakeoff.display.terminal import tell, write_json
from bakeoff.display.wording import counted
from bakeoff.vectors.options import VectorConfig

if TYPE_CHECKING:
    from bakeoff.reading.text_files import Texts
    from bakeoff.vectors.embed import VectorChunk
    from bakeoff.vectors.embedder import Embedder


@noted
@of_checkpoint("run")
@taking(pooled=options_of(VectorConfig))
def embed(
    run: Annotated[Path, typer.Argument(help="A pre-trained or a fine-tuned run.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts. If there are none, they are read from --texts.")
    ] = None,
    texts: TextsFile = None,
    text_column: TextColumn = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=(
                "File to write to: .npy (vectors alone), .jsonl or .parquet (with the texts). Default: print one "
                "JSON array per line."
            )
        ),
    ] = None,
    per: Annotated[
        Literal["word", "token"] | None,
        typer.Option(
            help=(
                "Give each word of a text, or each token, a vector in its context, with its place in the text; texts "
                "longer than a row are read in windows."
            )
        ),
    ] = None,
    *,
    pooled: dict[str, Any],
    errors: Errors = "strict",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Give each text a vector: the run's hidden states, pooled over the text's tokens.

    Example: bakeoff embed runs/bert --texts articles.jsonl --out articles.npy

    Example: bakeoff embed runs/bert "A text." "Another one." --layers 1,-1 > vectors.jsonl

    Example: bakeoff embed runs/bert "He sat on the bank." --per word
    """
    from bakeoff.vectors.embed import embed_file, embedded
    from bakeoff.vectors.embedder import Embedder

    require_out(out, (".npy", ".jsonl", ".parquet"))
    named = text_column is not None
    inputs = texts_of([list(text or [])], texts, [text_column or "text"], named, errors, ["--text-column"])
    if per is not None and pooled["pooling"] is None:
        pooled["pooling"] = "mean"
    embedder = Embedder(run, VectorConfig.parse(pooled, "embed"), device, precision=precision)
    if per is not None:
        _print_words(embedder, inputs, per, out)
        return
    blank, truncated = Blank(), 0
    if out is not None and out.suffix == ".npy":
        file = embed_file(embedder, inputs, out)
        blank.texts, blank.blank, truncated = file.texts, file.blank, file.truncated
        blank.hidden = file.hidden
        tell(f"{out}: {counted(file.texts, 'vector')} of {file.width} numbers, float32")
    else:

        def watched() -> Iterator["VectorChunk"]:
            nonlocal truncated
            for part in embedded(embedder, inputs):
                blank.texts += len(part.texts)
                blank.blank += sum(not each.strip() for each in part.texts)
                blank.hidden += part.hidden
                truncated += part.truncated
                yield part

        if out is not None:
            # The fewest digits that give the same float32 again, here as below.
            save_records(
                out,
                (
                    [
                        {"text": text, "vector": [float(str(number)) for number in vector]}
                        for text, vector in zip(part.texts, part.vectors, strict=True)
                    ]
                    for part in watched()
                ),
            )
            tell(f"{out}: {counted(blank.texts, 'vector')} of {embedder.width} numbers")
        for part in watched() if out is None else ():
            write_json("\n".join(f"[{', '.join(map(str, vector))}]" for vector in part.vectors))
    blank.tell("the vector of a row without words")
    if truncated:
        tell(f"{truncated:,} of {blank.texts:,} texts cut to {embedder.format.length:,} tokens; see --length")


def _print_words(embedder: "Embedder", texts: "Texts", per: Literal["word", "token"], out: Path | None) -> None:
    """Print a JSON object a line for each word, or write them to a file; .npy holds the vectors alone.

    Raises:
        UserError: the pooling is not the mean, or there is a mistake in the file of texts.
    """
    from bakeoff.arrays import write_array
    from bakeoff.vectors.word_vectors import require_mean, words_embedded

    require_mean(embedder)
    parts = words_embedded(embedder, texts, per)
    if out is None:
        for part in _records_of_words(parts):
            for record in part:
                write_json(json.dumps(record, ensure_ascii=False))
        return
    if out.suffix == ".npy":
        vectors = (each.vectors for part in parts for _, each in part)
        count = write_array(out, vectors, (embedder.width,), "<f4")
    else:
        count = save_records(out, _records_of_words(parts))
    tell(f"{out}: {counted(count, 'vector')} of {embedder.width} numbers")


def _records_of_words(parts: Iterator[list[tuple[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """A record of each word, with the number of its text from 1 on."""
    number = 0
    for part in parts:
        records = []
        for _, vectors in part:
            number += 1
            for word, vector in zip(vectors.words, vectors.vectors, strict=True):
                # The fewest digits that give the same float32 again.
                records.append({"number": number, **word._asdict(), "vector": [float(str(each)) for each in vector]})
        yield records
