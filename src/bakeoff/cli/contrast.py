"""`bakeoff contrast`."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Threads, Track, threads_of
from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.display.terminal import suggest
from bakeoff.display.wording import duration, states_of
from bakeoff.errors import UserError

Settings = Annotated[
    list[str],
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="A setting of the training, e.g. learning_rate=5e-4 or views=whole (docs/similarity.md).",
    ),
]


@noted
@of_checkpoint("run")
@taking(
    chosen=options_from("bakeoff.contrastive.config.ContrastConfig", "budget"),
    begun=options_from("bakeoff.contrastive.contrast.contrast", "seed", "resume"),
)
def contrast(
    run: Annotated[Path, typer.Argument(help="A pre-trained run.")],
    out: Annotated[Path, typer.Option(help="Directory to write the run with the vectors to.")],
    texts: Annotated[
        Path | None,
        typer.Option(
            help=(
                "File of texts to learn from: .jsonl, .csv, .tsv, .parquet, or plain text with one text per line; -: "
                "standard input."
            )
        ),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column or field of --texts with the text. Default: text.")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Corpus whose documents are learned from; with --texts, these are what the vectors are whitened on."
        ),
    ] = None,
    *,
    chosen: dict[str, Any],
    options: Settings = [],  # noqa: B006
    begun: dict[str, Any],
    device: Device = "auto",
    threads: Threads = "auto",
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Teach a pre-trained run vectors of texts without labels, for search, clusters and duplicates.

    Example: bakeoff contrast runs/bert --texts articles.jsonl --text-column body --out runs/vectors

    Example: bakeoff contrast runs/bert --corpus corpora/mine --out runs/vectors --budget minutes=10
    """
    from bakeoff.contrastive.config import ContrastConfig
    from bakeoff.contrastive.contrast import contrast as teach
    from bakeoff.overrides import parse_overrides
    from bakeoff.tracking.track import track as mirrored

    settings = parse_overrides(options, "--option")
    if "budget" in settings:
        raise UserError("--option budget: it is an option of its own, such as --budget minutes=10")
    config = ContrastConfig.parse(settings, "--option")
    if chosen:
        config = config.model_copy(update=chosen)
    with mirrored(out, track):
        made = teach(
            run,
            out,
            texts=texts,
            text_column=text_column,
            corpus=corpus,
            config=config,
            device=device,
            threads=threads_of(threads),
            **begun,
        )
    summary = made.summary
    if json:
        print_json(summary)
        return
    figures = [line for line in made.metrics() if line["kind"] == "validation"]
    taught = made.environment["vectors"]
    weighted = "weighted " if taught["pooling"] == "mean" and taught["rare"] else ""
    print_table(
        {
            "run": made.path,
            "trained": f"{summary['steps']:,} steps, {summary['tokens']:,} tokens in {duration(summary['seconds'])} "
            f"({summary['tokens_per_second']:,.0f} tokens/s)",
            "vectors": f"the {weighted}{taught['pooling']} of {states_of(taught['layers'])}",
            "held-out before": _figures(figures[0]),
            "held-out after": _figures(figures[-1]),
        }
    )
    suggest(f"bakeoff embed {quote(str(made.path))} --texts FILE --out vectors.npy")


def _figures(line: dict[str, Any]) -> str:
    """What a measurement on held-out texts has found, in words."""
    share = line["accuracy"]["contrast"]
    return (
        f"loss {line['loss']:.4f}  own text nearest {100 * share:.1f} %  alignment {line['alignment']:.3f}  "
        f"uniformity {line['uniformity']:.3f}"
    )
