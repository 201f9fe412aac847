"""`bakeoff evaluate`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bakeoff.cli.output import (
    Device,
    Errors,
    Json,
    Set,
    losses_text,
    print_json,
    print_table,
    remark_unfinished,
)
from bakeoff.cli.score import SourceColumn, TargetColumn, score_texts
from bakeoff.cli.scores import labels_text, pairs_text, set_text, simplest_text
from bakeoff.errors import UserError
from bakeoff.tasks.language.score_options import ScoreOptions


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run.")],
    corpus: Annotated[
        Path | None, typer.Option(help="For a pre-trained run: a corpus with the same tokenizer.")
    ] = None,
    split: Annotated[str, typer.Option(help="Of --corpus: validation, test or train.")] = "validation",
    examples: Annotated[
        int | None, typer.Option(min=1, help="Of --corpus: rows to measure on, spread evenly. Default: all.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="For a fine-tuned run: a labelled file.")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Of --data, by default as in fine-tuning; of --texts, by default text.")
    ] = None,
    pair_column: Annotated[str | None, typer.Option(help="Of --data: column with the second text of a pair.")] = None,
    label_column: Annotated[str | None, typer.Option(help="Of --data: column with the class.")] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="For a pre-trained run: the same as `bakeoff score RUN --texts`."),
    ] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    last_word: Annotated[
        bool, typer.Option("--last-word", help="Of --texts: score each text's last word alone (LAMBADA).")
    ] = False,
    stride: Annotated[
        int | None,
        typer.Option(help="Of --texts longer than a row: tokens that each further row adds. Default: half a row."),
    ] = None,
    minimal_pairs: Annotated[
        Path | None,
        typer.Option(help="For a pre-trained run: pairs of sentences, the first to be the likelier one (BLiMP)."),
    ] = None,
    reading: Annotated[
        Literal["forwards", "pseudo", "pseudo_words"] | None,
        typer.Option(help="Of --minimal-pairs: how they are read. Default: forwards where the run can, else pseudo."),
    ] = None,
    set: Set = [],  # noqa: B006
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a pre-trained run on held-out text or on texts of a file, or a fine-tuned run on another labelled file.

    Example: bakeoff evaluate runs/bert --corpus corpora/mine --split test

    Example: bakeoff evaluate runs/gpt --texts candidates.txt --json

    Example: bakeoff evaluate runs/bert --minimal-pairs blimp.jsonl.gz

    Example: bakeoff evaluate runs/xl --corpus corpora/mine --set model.decoder.block.mixer.memory=640
    """
    from bakeoff.tasks.evaluate import evaluate as evaluate_run
    from bakeoff.tasks.evaluate import opened

    if corpus is None and (split != "validation" or examples is not None):
        raise UserError("--split and --examples belong to --corpus DIR")
    if data is None and (pair_column is not None or label_column is not None):
        raise UserError("--pair-column and --label-column belong to --data FILE")
    if (corpus is not None or minimal_pairs is not None) and text_column is not None:
        raise UserError("--text-column belongs to --data FILE or --texts FILE")
    others = (corpus, data, minimal_pairs, reading)
    if texts is not None and all(each is None for each in others):  # else it is refused below
        options = ScoreOptions(text_column, source_column, target_column, errors, last_word, stride)
        score_texts(run, texts, options, out=None, overrides=set, device=device, json=json)
        return
    figures = evaluate_run(
        run,
        corpus=corpus,
        split=split,
        examples=examples,
        data=data,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        errors=errors,
        texts=texts,
        source_column=source_column,
        target_column=target_column,
        last_word=last_word,
        stride=stride,
        minimal_pairs=minimal_pairs,
        reading=reading,
        overrides=set,
        device=device,
    )
    if corpus is not None or minimal_pairs is not None:
        remark_unfinished(opened(run))
    if json:
        print_json(figures)
    elif "groups" in figures:
        print_table({**pairs_text(figures), **set_text(figures.get("set", {}))})
    elif "losses" in figures:
        print_table(
            {
                "rows": f"{figures['examples']:,} of the {figures['of_examples']:,} of {figures['split']}",
                **losses_text(figures, figures["split"]),
                **_words_text(figures),
                **set_text(figures.get("set", {})),
            }
        )
    else:
        print_table(
            {
                "rows": f"{figures['rows']:,}",
                **{name: f"{value:.4f}" for name, value in figures["scores"].items()},
                **simplest_text(figures["kind"], figures["simplest"]),
                **labels_text(figures["labels"]),
                **{f"note {number}": note for number, note in enumerate(figures.get("notes", ()), 1)},
            }
        )


def _words_text(figures: dict[str, Any]) -> dict[str, str]:
    """The perplexity per word, where there is one."""
    return {
        f"{name} per word": f"perplexity {value:.2f}  {figures['words']:,} words"
        for name, value in figures.get("perplexity_per_word", {}).items()
    }
