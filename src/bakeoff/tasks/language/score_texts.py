"""`evaluate --texts`: which columns of a file are scored by which runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from bakeoff.errors import UserError
from bakeoff.inference.scoring import TextScores, scoring_objective
from bakeoff.inference.text_files import TextFile
from bakeoff.inference.totals import Totals
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun


def open_scores(
    run: Run,
    texts: str | Path,
    *,
    text_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    errors: Literal["strict", "replace"] = "strict",
    last_word: bool = False,
    stride: int | None = None,
    device: str = "auto",
) -> TextScores:
    """The scores of a file's texts, computed as they are read.

    Args:
        run: a finished pre-trained run.
        texts: .jsonl, .csv, .tsv, or any other file with one text a line (for pairs: source, tab, target); `-` is
            standard input.
        text_column: the column with the text; absent: `text`.
        source_column: for a sequence-to-sequence model, the column with the source; absent: `source`.
        target_column: and the one with the target; absent: `target`.
        errors: invalid UTF-8 is an error, or is replaced.
        last_word: score the last word of each text alone.
        stride: the most tokens that are scored of a row of a text that is longer than one, behind its first row;
            absent: half a row.
        device: auto, cpu, cuda or mps.

    Raises:
        UserError: the run cannot score these texts, or there is a mistake in the file.
    """
    pairs = scoring_objective(run).scoring == "target"
    named = {"--source-column": source_column, "--target-column": target_column}
    wrong: Sequence[str] = [option for option, name in named.items() if name is not None]
    if pairs and text_column is not None:
        raise UserError(
            f"{run.path}: this run scores targets of sources; name their columns by --source-column and --target-column"
        )
    if not pairs and wrong:
        raise UserError(f"{run.path}: this run scores single texts; name their column by --text-column, not {wrong[0]}")
    columns = [source_column or "source", target_column or "target"] if pairs else [text_column or "text"]
    options = tuple(named) if pairs else ("--text-column",)
    file = TextFile(Path(texts), columns, bool(wrong) or text_column is not None, errors, options)
    return TextScores(run, file, last_word, device, stride)


def evaluate_texts(scores: TextScores) -> dict[str, Any]:
    """All scores of a file and their totals; with many texts read them one by one, as the command line does."""
    totals, found = Totals(scores.last_word), []
    for score in scores:
        totals.add(score)
        found.append(figures_of(score, scores.last_word))
    return {**heading(scores), **totals.figures(), "results": found}


def heading(scores: TextScores) -> dict[str, Any]:
    """What was scored, and what the numbers are."""
    return {"run": str(scores.run.path), "texts_file": scores.where, "measure": scores.measure}


def figures_of(score: Any, last_word: bool) -> dict[str, Any]:
    """A score by the names of its figures."""
    figures = {"log_probability": score.log_probability, "tokens": score.tokens, "unknown": score.unknown}
    return {**figures, "word": score.text, "likeliest": score.likeliest} if last_word else figures


def require_pretrained(run: str | Path) -> None:
    """Refuse a fine-tuned run, whose head names classes.

    Raises:
        UserError: it is one.
    """
    if FinetunedRun.at(run):
        source = FinetunedRun.open(run).results.source
        raise UserError(
            f"{run}: a fine-tuned run names classes and scores no texts; score them with "
            f"{source or 'a pre-trained run'}"
        )
