"""`bakeoff evaluate`."""

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.cli.shared.printing import losses_text, print_json, print_table, remark_unfinished, set_text, simplest_text
from bakeoff.cli.shared.scoring import score_texts
from bakeoff.cli.shared.task_options import NamedColumns, Options, columns_of
from bakeoff.display.wording import counted, listed
from bakeoff.errors import UserError
from bakeoff.tasks.evaluate_options import EvaluateOptions

MEASURED = ("corpus", "split", "examples", "data")
"""Options that come first."""


@noted
@of_checkpoint("run")
@taking(
    measured=options_of(EvaluateOptions, *MEASURED),
    columns=columns_of,
    of_texts=options_of(
        EvaluateOptions,
        *("texts", "source_column", "target_column", "last_word", "stride", "minimal_pairs", "reading", "errors"),
        last_word={"about": "With --texts"},
        stride={"about": "With --texts"},
    ),
)
def evaluate(
    run: Annotated[Path, typer.Argument(help="A pre-trained or fine-tuned run.")],
    *,
    measured: dict[str, Any],
    columns: NamedColumns,
    options: Options = [],  # noqa: B006
    of_texts: dict[str, Any],
    set: Set = [],  # noqa: B006
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
    from bakeoff.overrides import parse_overrides
    from bakeoff.tasks.evaluate import evaluate as evaluate_run
    from bakeoff.tasks.evaluate import opened

    given = {**measured, **of_texts}
    text_column = columns["text_column"]
    others = {name: column for name, column in columns.items() if name != "text_column" and column is not None}
    _require_belonging(given, text_column, bool(others or options))
    alone = all(given[name] is None for name in ("corpus", "data", "minimal_pairs", "reading"))
    if given["texts"] is not None and alone:  # otherwise `texts` is refused below
        scored = EvaluateOptions.parse({**given, "text_column": text_column}, "evaluate").scored()
        score_texts(run, given["texts"], scored, out=None, overrides=set, device=device, json=json)
        return
    settings = {**others, **parse_overrides(options, "--option")}
    figures = evaluate_run(run, overrides=set, device=device, text_column=text_column, settings=settings, **given)
    if given["data"] is None:
        remark_unfinished(opened(run))
    if json:
        print_json(figures)
    else:
        print_table(_rows(figures))


def _require_belonging(given: Mapping[str, Any], text_column: str | None, of_data: bool) -> None:
    """Refuse options that belong to data which were not given.

    Args:
        given: the fields of `EvaluateOptions`.
        text_column: the column with the text.
        of_data: whether other columns or settings of a labelled file are given.
    """
    if given["corpus"] is None and (given["split"] != "validation" or given["examples"] is not None):
        raise UserError("--split and --examples belong to --corpus DIR")
    if given["data"] is None and of_data:
        names = [f"--{name.replace('_', '-')}" for name in signature(columns_of).parameters if name != "text_column"]
        raise UserError(f"{listed([*names, '--option'], 'and')} belong to --data FILE")
    if (given["corpus"] is not None or given["minimal_pairs"] is not None) and text_column is not None:
        raise UserError("--text-column belongs to --data FILE or --texts FILE")


def _rows(figures: dict[str, Any]) -> dict[str, str]:
    """The rows of what is printed: of minimal pairs, of a corpus or of labelled data."""
    if "groups" in figures:
        return {**_pairs_text(figures), **set_text(figures.get("set", {}))}
    if "losses" in figures:
        return {
            "rows": f"{figures['examples']:,} of the {figures['of_examples']:,} of {figures['split']}",
            **losses_text(figures, figures["split"]),
            **_words_text(figures),
            **_separators_text(figures),
            **({"unknown": figures["hidden"]} if figures["hidden"] else {}),
            **set_text(figures.get("set", {})),
        }
    return {
        "rows": f"{figures['rows']:,}",
        **{name: f"{value:.4f}" for name, value in figures["scores"].items()},
        **simplest_text(figures["kind"], figures["simplest"], figures["simplest_from"]),
        **_labels_text(figures["labels"]),
        **{f"note {number}": note for number, note in enumerate(figures.get("notes", ()), 1)},
    }


def _words_text(figures: dict[str, Any]) -> dict[str, str]:
    """A row with the perplexity per word; empty where there is none."""
    return {
        f"{name} per word": f"perplexity {value:.2f}  {figures['words']:,} words"
        for name, value in figures.get("perplexity_per_word", {}).items()
    }


def _separators_text(figures: dict[str, Any]) -> dict[str, str]:
    """A row that says which separators are predicted beside the text, where they are not those of documents alone."""
    from bakeoff.objectives.held_out import DOCUMENTS
    from bakeoff.objectives.registry import OBJECTIVES

    counted = any(OBJECTIVES[name].whole_text for name in figures["losses"])
    usual = figures["separators"] == DOCUMENTS or not counted
    return {} if usual else {"separators": f"{figures['separators']}, which are predicted and counted, too"}


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
