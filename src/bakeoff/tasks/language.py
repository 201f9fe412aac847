"""Texts that a pre-trained run scores: those of a file (`score`), and minimal pairs (`evaluate --minimal-pairs`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.reading.tables import open_table
from bakeoff.reading.text_files import TextFile, Texts, in_memory
from bakeoff.runs.run import Run
from bakeoff.scoring.methods import readings, readings_of, require_reading
from bakeoff.scoring.minimal_pairs import MinimalPair, judge, kinds_of, read_minimal_pairs
from bakeoff.scoring.options import Reading, ScoreOptions
from bakeoff.scoring.texts import TextScores, scoring_objective
from bakeoff.scoring.totals import Totals
from bakeoff.tasks.finetuned_run import FinetunedRun


def open_scores(
    run: Run,
    texts: str | Path | Sequence[tuple[str, ...]],
    options: ScoreOptions = ScoreOptions(),
    device: str = "auto",
    processes: Processes = ALONE,
) -> TextScores:
    """The scores of a file's texts, computed as they are read.

    Args:
        run: a finished pre-trained run.
        texts: .jsonl, .csv, .tsv, or any other file with one text a line (for pairs: source, tab, target); `-` is
            standard input. Or tuples of texts, of sources with their targets.
        options: the columns, and the part of each text.
        device: auto, cpu, cuda or mps.
        processes: those that score the texts together.

    Raises:
        UserError: the run cannot score these texts, or there is a mistake in the file.
    """
    pairs = scoring_objective(run).scoring == "target"
    named = {"--source-column": options.source_column, "--target-column": options.target_column}
    wrong: Sequence[str] = [option for option, name in named.items() if name is not None]
    if pairs and options.text_column is not None:
        raise UserError(
            f"{run.path}: this run scores targets of sources; name their columns by --source-column and --target-column"
        )
    if not pairs and wrong:
        raise UserError(f"{run.path}: this run scores single texts; name their column by --text-column, not {wrong[0]}")
    if not isinstance(texts, str | Path):
        wanted = 2 if pairs else 1
        if any(len(each) != wanted for each in texts):
            needs = "targets of sources; give --target for each" if pairs else "single texts; leave --target out"
            raise UserError(f"{run.path}: this run scores {needs}")
        return _scores(run, in_memory(*zip(*texts, strict=True)), options, device, processes)
    columns = [options.source_column or "source", options.target_column or "target"]
    if not pairs:
        columns = [options.text_column or "text"]
    named_column, naming = bool(wrong) or options.text_column is not None, tuple(named) if pairs else ("--text-column",)
    file = TextFile(Path(texts), columns, named_column, options.errors, naming)
    return _scores(run, file, options, device, processes)


def _scores(run: Run, texts: Texts, options: ScoreOptions, device: str, processes: Processes) -> TextScores:
    last_word, stride, per, reading = options.last_word, options.stride, options.per, options.reading
    return TextScores(run, texts, last_word, device, stride, per=per, reading=reading, processes=processes)


def evaluate_texts(scores: TextScores) -> dict[str, Any]:
    """All scores of a file and their totals, in memory; of many texts, take them one by one from `open_scores`."""
    totals, results = Totals(scores.last_word), []
    for score in scores:
        totals.add(score)
        results.append(figures_of(score, scores.last_word))
    return {**heading(scores), **totals.figures(), "results": results}


def heading(scores: TextScores) -> dict[str, Any]:
    """The first figures of a report: the run and the texts, and the meaning of the numbers."""
    return {"run": str(scores.run.path), "texts_file": scores.where, "measure": scores.measure}


def figures_of(score: Any, last_word: bool) -> dict[str, Any]:
    """The figures of a score by name; those of its words or tokens, where it has them, are the list `parts`."""
    figures = {"log_probability": score.log_probability, "tokens": score.tokens, "unknown": score.unknown}
    if score.parts is not None:
        figures["parts"] = [part._asdict() for part in score.parts]
    return {**figures, "word": score.text, "likeliest": score.likeliest} if last_word else figures


def require_pretrained(run: str | Path) -> None:
    """Refuse a fine-tuned run, whose head predicts labels.

    Raises:
        UserError: the run is fine-tuned.
    """
    if FinetunedRun.at(run):
        source: str | Path | None = run
        while source and FinetunedRun.at(source):  # a fine-tuning may have begun from another one
            source = FinetunedRun.open(source).results.source
        raise UserError(f"{run}: a fine-tuned run scores no texts; score them with {source or 'a pre-trained run'}")


GROUP = "UID"
"""The column with the phenomenon that a pair tests."""


def pairs_of(path: str | Path) -> list[MinimalPair]:
    """The minimal pairs of a file, in the groups that its column UID names, if it has one.

    Raises:
        UserError: there is no such file or column, or it has no pairs.
    """
    names = open_table(Path(path), "replace").names()
    return read_minimal_pairs(path, group=GROUP if GROUP in names else None)


def reading_of(run: Run, reading: Reading | None) -> Reading:
    """The way in which a run reads sentences; None: forwards where it can, else the first way that it can.

    Unless it is named, a way that only stages of the training taught is not chosen where another one was taught after.

    Raises:
        UserError: the run cannot read so, or gives sentences no probability.
    """
    if reading is not None:
        require_reading(run, reading)
        return reading
    known = readings_of(run.recipe.trained) or readings(run)
    return "forwards" if "forwards" in known else next(iter(known))


def evaluate_pairs(
    run: Run, pairs: str | Path, reading: Reading | None, device: str, processes: Processes = ALONE
) -> dict[str, Any]:
    """The accuracy of a run on a file of minimal pairs.

    Args:
        run: a finished pre-trained run.
        pairs: a .jsonl, .csv or .tsv with the columns sentence_good and sentence_bad, and, where it has them, UID,
            field and linguistics_term.
        reading: how sentences are read; None: the first way that the run has learnt, forwards before pseudo.
        device: auto, cpu, cuda or mps.
        processes: those that score the sentences together.

    Raises:
        UserError: the run has not learnt to read in this way, or there is a mistake in the file.
    """
    chosen = reading_of(run, reading)
    sorts = kinds_of(pairs)
    result = judge(run, pairs_of(pairs), chosen, device=device, processes=processes)
    return {
        "run": str(run.path),
        "pairs_file": str(pairs),
        "reading": chosen,
        "pairs": result.pairs,
        "ties": result.ties,
        "unknown": result.unknown,
        "accuracy": result.accuracy,
        "accuracy_of_pairs": result.accuracy_of_pairs,
        **dict(zip(sorts, result.kinds, strict=True)),
        "groups": result.groups,
        "group_pairs": result.sizes,
    }
