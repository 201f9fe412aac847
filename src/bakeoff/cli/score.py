"""`bakeoff score`, which `evaluate --texts` is, too."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bakeoff.cli.answer_files import TABLES, require_out, save_answers
from bakeoff.cli.answers import TextsFile
from bakeoff.cli.output import Device, Errors, Json, Set, remark_unfinished
from bakeoff.cli.scores import print_scores, set_text, totals_text
from bakeoff.cli.shared_options import of_checkpoint
from bakeoff.display.terminal import tell
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.tasks.language.score_options import ScoreOptions

if TYPE_CHECKING:
    from bakeoff.inference.scoring import TextScores
    from bakeoff.inference.totals import Totals

SourceColumn = Annotated[
    str | None,
    typer.Option(help="For sequence-to-sequence runs: column or field of --texts with the source. Default: source."),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(
        help="For sequence-to-sequence runs: column or field of --texts with the scored target. Default: target."
    ),
]

SCORES_AT_ONCE = 4096
"""Number of scores that are written at once."""


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


def score_texts(
    run: Path,
    texts: Path | Sequence[tuple[str, ...]],
    options: ScoreOptions,
    *,
    out: Path | None,
    overrides: Sequence[str],
    device: str,
    json: bool,
) -> None:
    """Score texts and print the scores, or write them; arguments as of the verb.

    Raises:
        UserError: the run cannot score these texts, or there is a mistake in the file.
    """
    from bakeoff.inference.totals import Totals
    from bakeoff.runs.changed_run import parsed
    from bakeoff.tasks.evaluate import opened
    from bakeoff.tasks.language.score_texts import open_scores

    require_out(out, (*TABLES, ".npy"))
    changed = opened(run, overrides)
    remark_unfinished(changed)
    scores = open_scores(changed, texts, options, device)
    if out is None:
        print_scores(scores, parsed(overrides), json)
        return
    totals = Totals(scores.last_word)
    if out.suffix == ".npy":
        import numpy as np

        from bakeoff.arrays import write_array

        name = "log_probability" if scores.per is None else "surprisal"
        numbers = (np.array([each[name] for each in part]) for part in _records(scores, totals))
        write_array(out, numbers, (), "<f8")
    else:
        save_answers(out, _records(scores, totals))
    rows = {**totals_text(totals.figures(), scores.measure), **set_text(parsed(overrides))}
    tell(f"{out}: {totals.texts:,} scores")
    for name, value in rows.items():
        tell(f"{name:<{max(map(len, rows))}}  {value}")


def _records(scores: "TextScores", totals: "Totals") -> Iterator[list[dict[str, Any]]]:
    """Records of the scores with their texts, part by part; each part is added to `totals`.

    Where words or tokens were asked for, each has a record with the number of its text, from 1 on.
    """
    from bakeoff.tasks.language.score_texts import figures_of

    part: list[dict[str, Any]] = []
    for each in scores:
        totals.add(each)
        if each.parts is None:
            part.append({"text": each.text, **figures_of(each, scores.last_word)})
        else:
            part += [{"number": totals.texts, **of_part._asdict()} for of_part in each.parts]
        if len(part) >= SCORES_AT_ONCE:
            yield part
            part = []
    yield part
