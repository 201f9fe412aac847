"""`bakeoff embed` and `similarity`."""

import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bakeoff.cli.answer_files import require_out, save_answers
from bakeoff.cli.answers import Blank, TextsFile, texts_of
from bakeoff.cli.output import Device, Errors, Json, print_table
from bakeoff.cli.shared_options import of_checkpoint
from bakeoff.cli.word_vectors import print_words
from bakeoff.display.terminal import tell, write_json
from bakeoff.display.wording import counted
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.vectors.embed import VectorChunk

Pooling = Annotated[
    Literal["mean", "cls", "last", "max"],
    typer.Option(
        help=(
            "How token vectors become one vector: the mean or max of all, or the vector of [CLS] (cls) or of the last "
            "token (last)."
        )
    ),
]
Layers = Annotated[
    str,
    typer.Option(
        metavar="N,N",
        help="Layers whose output is pooled, e.g. 1,-1, and averaged. 0 is the input of the first, -1 the last.",
    ),
]
Length = Annotated[
    int | None, typer.Option(help="Maximal length of a text in tokens; longer texts are cut. Default: as in training.")
]


@of_checkpoint("run")
def embed(
    run: Annotated[Path, typer.Argument(help="A pre-trained or a fine-tuned run.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts. If there are none, they are read from --texts.")
    ] = None,
    texts: TextsFile = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column or field of --texts with the text. Default: text.")
    ] = None,
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
    pooling: Pooling = "mean",
    layers: Layers = "-1",
    length: Length = None,
    errors: Errors = "strict",
    device: Device = "auto",
) -> None:
    """Give each text a vector: the run's hidden states, pooled over the text's tokens.

    Example: bakeoff embed runs/bert --texts articles.jsonl --out articles.npy

    Example: bakeoff embed runs/bert "A text." "Another one." --layers 1,-1 > vectors.jsonl

    Example: bakeoff embed runs/bert "He sat on the bank." --per word
    """
    from bakeoff.vectors.embed import embed_file, embedded
    from bakeoff.vectors.embedder import Embedder, VectorConfig

    require_out(out, (".npy", ".jsonl", ".parquet"))
    named = text_column is not None
    given = texts_of([list(text or [])], texts, [text_column or "text"], named, errors, ["--text-column"])
    config = VectorConfig.parse(
        {"pooling": pooling, "layers": numbers_of("--layers", layers), "length": length}, "embed"
    )
    embedder = Embedder(run, config, device)
    if per is not None:
        print_words(embedder, given, per, out)
        return
    blank, truncated = Blank(), 0
    if out is not None and out.suffix == ".npy":
        found = embed_file(embedder, given, out)
        blank.texts, blank.blank, truncated = found.texts, found.blank, found.truncated
        blank.hidden = found.hidden
        tell(f"{out}: {found.texts:,} vectors of {found.width} numbers, float32")
    else:

        def watched() -> Iterator["VectorChunk"]:
            nonlocal truncated
            for part in embedded(embedder, given):
                blank.texts += len(part.texts)
                blank.blank += sum(not each.strip() for each in part.texts)
                blank.hidden += part.hidden
                truncated += part.truncated
                yield part

        if out is not None:
            # The fewest digits that give the same float32 again, here as below.
            save_answers(
                out,
                (
                    [
                        {"text": text, "vector": [float(str(number)) for number in vector]}
                        for text, vector in zip(part.texts, part.vectors, strict=True)
                    ]
                    for part in watched()
                ),
            )
            tell(f"{out}: {blank.texts:,} vectors of {embedder.width} numbers")
        for part in watched() if out is None else ():
            write_json("\n".join(f"[{', '.join(map(str, vector))}]" for vector in part.vectors))
    blank.tell("the vector of a row without words")
    if truncated:
        tell(f"{truncated:,} of {blank.texts:,} texts cut to {embedder.format.length:,} tokens; see --length")


@of_checkpoint("run")
def similarity(
    run: Annotated[Path, typer.Argument(help="A pre-trained or a fine-tuned run.")],
    data: Annotated[Path, typer.Option(help="File with two texts in each row: .csv, .tsv or .jsonl.")],
    text_column: Annotated[str, typer.Option(help="Column with the first text.")],
    pair_column: Annotated[str, typer.Option(help="Column with the second text.")],
    label_column: Annotated[
        str | None,
        typer.Option(
            help=(
                "Column with a number for how alike the two are. Default: none; then measure retrieval of each second "
                "text."
            )
        ),
    ] = None,
    least_score: Annotated[
        float | None, typer.Option(help="With scores: also measure retrieval, on the rows with at least this score.")
    ] = None,
    at: Annotated[str, typer.Option(metavar="K,K", help="Values of k for recall@k, e.g. 1,10.")] = "1,5,10",
    pooling: Pooling = "mean",
    layers: Layers = "-1",
    length: Length = None,
    whiten: Annotated[
        bool,
        typer.Option(
            "--whiten",
            help="Whiten the vectors: scale all their directions to the same variance over the texts of the file.",
        ),
    ] = False,
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two columns of texts by a run's vectors, without training: correlation with scores, or retrieval.

    Example: bakeoff similarity runs/bert --data sts-test.tsv --text-column sentence1 --pair-column sentence2
    --label-column score

    Example: bakeoff similarity runs/bert --data questions.jsonl --text-column question --pair-column answer --at 1,10
    """
    from bakeoff.vectors.similarity import similarity as compare_texts

    figures = compare_texts(
        run,
        data,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        least_score=least_score,
        at=numbers_of("--at", at),
        pooling=pooling,
        layers=numbers_of("--layers", layers),
        length=length,
        whiten=whiten,
        errors=errors,
        device=device,
    )
    if json:
        cosines = figures.pop("cosines")
        write_json(json_format.dumps(figures, ensure_ascii=False).removesuffix("}") + ', "cosines": [')
        write_json(",\n".join(map(repr, cosines)))
        write_json("]}")
        return
    rows = f"{figures['rows']:,}"
    if "recall" in figures["scores"]:
        rows += f"  sought {figures['scores']['queries']:,} among {figures['scores']['partners']:,}"
    if figures["blank"]:
        rows += f"  blank {counted(figures['blank'], 'text')}"
    if figures["truncated"]:
        rows += f"  cut {counted(figures['truncated'], 'text')}"
    print_table(
        {
            "rows": rows,
            **({"unknown": figures["hidden"]} if figures["hidden"] else {}),
            "cosine, whitened" if whiten else "cosine": _figures(figures["scores"]),
            **_floors(figures["floors"]),
        }
    )


def _floors(floors: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: _figures(own) for name, own in floors.items()}


def _figures(own: dict[str, Any]) -> str:
    """Correlations, or recall and mean reciprocal rank, in words."""
    parts = [f"{name} {own[name]:.4f}" for name in ("spearman", "pearson") if name in own]
    if "recall" in own:
        parts += [f"recall@{k} {share:.4f}" for k, share in own["recall"].items()] + [f"mrr {own['mrr']:.4f}"]
    return "  ".join(parts)


def numbers_of(option: str, text: str) -> list[int]:
    """The numbers of a text of whole numbers with commas between.

    Raises:
        UserError: the text is something else; the message names `option`.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{option} {text}: give whole numbers, with commas between them") from None
