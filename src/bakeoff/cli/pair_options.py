"""Options of `bakeoff prepare` that are for corpora of pairs (translation)."""

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="For translation, in place of TEXTS: files of source sentences, one per line."),
]
Target = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="For translation: files of target sentences, line by line the translations of --source.",
    ),
]
SourceField = Annotated[
    str,
    typer.Option(
        help="For translation: field or column with the source sentence, in .jsonl, .csv, .tsv, .parquet and .arrow."
    ),
]
TargetField = Annotated[str, typer.Option(help="For translation: field or column with the target sentence.")]
SeparateVocabularies = Annotated[
    bool,
    typer.Option(
        "--separate-vocabularies",
        help="Train one tokenizer for the source language and another one for the target language.",
    ),
]
LongestPair = Annotated[
    int, typer.Option(metavar="N", min=1, help="Leave out pairs with more tokens than this on either side.")
]
Ratio = Annotated[
    float | None,
    typer.Option(
        metavar="R", min=1, help="Leave out pairs where one side has more than R times the tokens of the other."
    ),
]
ValidationSource = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="For translation: held-out files of source sentences.")
]
ValidationTarget = Annotated[
    list[Path] | None, typer.Option(metavar="FILE", help="For translation: held-out files of target sentences.")
]
TestSource = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="For translation: files of source sentences for the test split."),
]
TestTarget = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="For translation: files of target sentences for the test split."),
]
