"""`bakeoff evaluate`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.options import Device, Errors, Json, Set
from bakeoff.cli.shared.printing import losses_text, print_json, print_table, remark_unfinished, set_text, simplest_text
from bakeoff.cli.shared.scoring import SourceColumn, TargetColumn, score_texts
from bakeoff.cli.shared.task_options import NamedColumns, Options, columns_of
from bakeoff.display.wording import counted, listed
from bakeoff.errors import UserError
from bakeoff.scoring.options import ScoreOptions


@noted
@of_checkpoint("run")
@taking(columns=columns_of)
def evaluate(
    run: Annotated[Path, typer.Argument(help="A pre-trained or fine-tuned run.")],
    corpus: Annotated[
        Path | None, typer.Option(help="For a pre-trained run: corpus to measure it on, made with the same tokenizer.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="With --corpus: the split to measure on, validation, test or train.")
    ] = "validation",
    examples: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --corpus: number of rows to measure on, spread evenly over the split. Default: all."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="For a fine-tuned run: labelled file to measure it on.")] = None,
    *,
    columns: NamedColumns,
    options: Options = [],  # noqa: B006
    texts: Annotated[
        Path | None,
        typer.Option(help="For a pre-trained run: the same as `bakeoff score RUN --texts`."),
    ] = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    last_word: Annotated[
        bool, typer.Option("--last-word", help="With --texts: score only the last word of each text (LAMBADA).")
    ] = False,
    stride: Annotated[
        int | None,
        typer.Option(
            help="With --texts longer than a row: number of new tokens in each further row. Default: half a row."
        ),
    ] = None,
    minimal_pairs: Annotated[
        Path | None,
        typer.Option(
            help="For a pre-trained run: file of sentence pairs; the model should find the first one likelier (BLiMP)."
        ),
    ] = None,
    reading: Annotated[
        Literal["forwards", "pseudo", "pseudo_words"] | None,
        typer.Option(
            help="With --minimal-pairs: how the run scores them. Default: forwards where the run can, else pseudo."
        ),
    ] = None,
    set: Set = [],  # noqa: B006
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a pre-trained run on held-out text or on texts of a file, or a fine-tuned run on another labelled file.

    Columns and --option describe the file of --data; those that are not given are as in fine-tuning. --text-column goes
    with --texts, too.

    Example: bakeoff evaluate runs/bert --corpus corpora/mine --split test

    Example: bakeoff evaluate runs/reviews --data new.tsv --text-column 1 --label-column 2 --option header=false

    Example: bakeoff evaluate runs/gpt --texts candidates.txt --json

    Example: bakeoff evaluate runs/bert --minimal-pairs blimp.jsonl.gz

    Example: bakeoff evaluate runs/xl --corpus corpora/mine --set model.decoder.block.mixer.memory=640
    """
    from bakeoff.overrides import parse_override
    from bakeoff.tasks.evaluate import evaluate as evaluate_run
    from bakeoff.tasks.evaluate import opened

    if corpus is None and (split != "validation" or examples is not None):
        raise UserError("--split and --examples belong to --corpus DIR")
    text_column = columns["text_column"]
    others = {key: value for key, value in columns.items() if key != "text_column"}
    if data is None and (options or any(value is not None for value in others.values())):
        names = [f"--{key.replace('_', '-')}" for key in others]
        raise UserError(f"{listed([*names, '--option'], 'and')} belong to --data FILE")
    if (corpus is not None or minimal_pairs is not None) and text_column is not None:
        raise UserError("--text-column belongs to --data FILE or --texts FILE")
    alone = all(each is None for each in (corpus, data, minimal_pairs, reading))
    if texts is not None and alone:  # otherwise `texts` is refused below
        scored = ScoreOptions(text_column, source_column, target_column, errors, last_word, stride)
        score_texts(run, texts, scored, out=None, overrides=set, device=device, json=json)
        return
    settings = {key: value for key, value in others.items() if value is not None}
    settings |= dict(parse_override(text, "--option") for text in options)
    figures = evaluate_run(
        run,
        corpus=corpus,
        split=split,
        examples=examples,
        data=data,
        text_column=text_column,
        settings=settings,
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
        print_table({**_pairs_text(figures), **set_text(figures.get("set", {}))})
    elif "losses" in figures:
        print_table(
            {
                "rows": f"{figures['examples']:,} of the {figures['of_examples']:,} of {figures['split']}",
                **losses_text(figures, figures["split"]),
                **_words_text(figures),
                **({"unknown": figures["hidden"]} if figures["hidden"] else {}),
                **set_text(figures.get("set", {})),
            }
        )
    else:
        print_table(
            {
                "rows": f"{figures['rows']:,}",
                **{name: f"{value:.4f}" for name, value in figures["scores"].items()},
                **simplest_text(figures["kind"], figures["simplest"]),
                **_labels_text(figures["labels"]),
                **{f"note {number}": note for number, note in enumerate(figures.get("notes", ()), 1)},
            }
        )


def _words_text(figures: dict[str, Any]) -> dict[str, str]:
    """A row with the perplexity per word; empty where there is none."""
    return {
        f"{name} per word": f"perplexity {value:.2f}  {figures['words']:,} words"
        for name, value in figures.get("perplexity_per_word", {}).items()
    }


def _pairs_text(figures: dict[str, Any]) -> dict[str, str]:
    """Rows with the share of minimal pairs whose good sentence is the likelier one, in all, by kind and by group."""
    rows = {"pairs": f"{figures['pairs']:,}  ties {figures['ties']:,}  read {figures['reading']}"}
    if figures["unknown"]:
        rows["pairs"] += f"  with unknown tokens {figures['unknown']:,}"
    sizes = figures["group_pairs"]
    over = f"mean over {counted(len(sizes), 'group')}, {figures['accuracy_of_pairs']:.4f} over pairs"
    rows["accuracy"] = f"{figures['accuracy']:.4f}  {over}"
    for sort in ("field", "linguistics_term"):
        rows |= {f"{sort} {name}": f"{value:.4f}" for name, value in figures.get(sort, {}).items()}
    if len(sizes) > 1:
        rows |= {
            f"group {name}": f"{value:.4f}  {counted(sizes[name], 'pair')}" for name, value in figures["groups"].items()
        }
    return rows


def _labels_text(labels: dict[str, dict[str, float]]) -> dict[str, str]:
    """A row for each label, with the scores of finding it and its number in the data."""
    return {
        f"label {name}": f"F1 {scores['f1']:.4f}  precision {scores['precision']:.4f}  recall {scores['recall']:.4f}  "
        f"count {scores['count']:,}"
        for name, scores in labels.items()
    }
