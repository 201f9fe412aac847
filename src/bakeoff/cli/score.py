"""`bakeoff score`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.cli.shared.scoring import score_texts
from bakeoff.cli.shared.texts import TextsFile
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.scoring.options import ScoreOptions

COLUMNS = ("text_column", "source_column", "target_column")


@noted
@of_checkpoint("run")
@taking(options=options_of(ScoreOptions, *COLUMNS, "last_word", "per", "reading", "stride", "errors"))
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
    *,
    options: dict[str, Any],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write the scores to: .jsonl, .tsv, .parquet or .npy. Default: print them."),
    ] = None,
    set: Set = [],  # noqa: B006
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
    if arguments and (texts is not None or any(options[name] is not None for name in COLUMNS)):
        raise UserError("texts are given as arguments; --texts and columns are for texts of a file")
    if target and len(target) != len(arguments):
        raise UserError(f"{counted(len(arguments), 'text')} and {len(target)} of --target: one for each is needed")
    pairs = list(zip(arguments, target, strict=True)) if target else [(each,) for each in arguments]
    asked = ScoreOptions.parse(options, "score")
    score_texts(run, pairs or texts or Path("-"), asked, out=out, overrides=set, device=device, json=json)
