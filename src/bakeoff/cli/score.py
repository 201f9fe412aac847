"""`bakeoff score`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint
from bakeoff.cli.shared.options import Device, Errors, Json, Set
from bakeoff.cli.shared.scoring import SourceColumn, TargetColumn, score_texts
from bakeoff.cli.shared.texts import TextsFile
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.scoring.options import ScoreOptions


@noted
@of_checkpoint("run")
def score(
    run: Annotated[Path, typer.Argument(help="A pre-trained run.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts. If there are none, they are read from --texts.")
    ] = None,
    target: Annotated[
        list[str],
        typer.Option(
            help="For sequence-to-sequence runs: target to score. Give one for each text, which is its source."
        ),
    ] = [],  # noqa: B006
    texts: TextsFile = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column or field of --texts with the text. Default: text.")
    ] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    last_word: Annotated[
        bool, typer.Option("--last-word", help="Score only the last word of each text (LAMBADA).")
    ] = False,
    per: Annotated[
        Literal["word", "token"] | None,
        typer.Option(
            help="Also give the surprisal of each word, or of each token, in bits, with its place in the text."
        ),
    ] = None,
    reading: Annotated[
        Literal["forwards", "pseudo", "pseudo_words"] | None,
        typer.Option(
            help=(
                "How texts are read: forwards; each token given all others (pseudo); the same with the later tokens of "
                "its word hidden, too (pseudo_words). Default: as the run's first objective has learned."
            )
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            help="For texts longer than a row: number of new tokens in each further row. Default: half a row."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write the scores to: .jsonl, .tsv, .parquet or .npy. Default: print them."),
    ] = None,
    set: Set = [],  # noqa: B006
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Print the log-probability of each text; for models that see both sides, the pseudo-log-likelihood.

    The figures of each text come first, then those of all texts together.

    Example: bakeoff score runs/gpt "The city is large." "City the large is."

    Example: bakeoff score runs/bert --texts candidates.jsonl --out scores.npy

    Example: bakeoff score runs/gpt --texts stimuli.txt --per word --out surprisals.tsv
    """
    arguments = list(text or [])
    named = [text_column, source_column, target_column]
    if arguments and (texts is not None or any(each is not None for each in named)):
        raise UserError("texts are given as arguments; --texts and columns are for texts of a file")
    if target and len(target) != len(arguments):
        raise UserError(f"{counted(len(arguments), 'text')} and {len(target)} of --target: one for each is needed")
    pairs = list(zip(arguments, target, strict=True)) if target else [(each,) for each in arguments]
    options = ScoreOptions(text_column, source_column, target_column, errors, last_word, stride, per, reading)
    score_texts(run, pairs or texts or Path("-"), options, out=out, overrides=set, device=device, json=json)
