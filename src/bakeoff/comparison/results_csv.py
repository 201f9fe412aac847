"""results.csv: the results of a comparison as a table, for those who make tables of their own."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import MeasurementScore
from bakeoff.comparison.pretraining_run import SPENT, PretrainingRun
from bakeoff.comparison.results import SPLITS, CheckpointEntry, FinetuningScore, RecipeEntry, Results
from bakeoff.display.spreadsheet import write_table
from bakeoff.durable import write_atomically

CUT = ("rows", "tokens")
"""What is counted of the rows of a split that were cut."""

COLUMNS = {name: f"pretrain_{name}" for name in SPENT[:5]} | {name: name for name in SPENT[5:]}
"""The columns of what a pre-training has spent, by the field of `PretrainingRun`."""

SHARE = "budget_share"
"""The column of the share of the budget that a pre-training had; there where some had less than all."""


def write_csv(results: Results, path: Path) -> None:
    """Write `results.csv`: one row for each recipe, seed, task, fine-tuning seed and initialisation, or measurement.

    With checkpoints there are further rows with their share of the budget, 1 being the whole of it, and with grids a
    column for each factor.
    """
    early = [each for entry in results.recipes for each in entry.checkpoints]
    of_all: list[RecipeEntry | CheckpointEntry] = [*results.recipes, *early]
    scored = [score.test for those in of_all for score in those.scores]
    scored += [each.scores for those in of_all for each in those.measurements]
    metrics = sorted({name for scores in scored for name in scores})
    header = ["recipe", *dict.fromkeys(_factor(title) for grid in results.grids for title in grid.factors)]
    header += ["seed", "task", "finetune_seed", "initialisation", *([SHARE] if early else [])]
    header += ["learning_rate", "best_epoch"]
    header += [f"{split}_{name}" for split in ("dev", "test") for name in metrics]
    header += [f"{split}_{what}_cut" for split in SPLITS for what in CUT]
    header += ["transferred_tensors", "finetune_seconds", "parameters", "flops_per_token"]
    header += [*COLUMNS.values(), "held_out_loss", "latency_seconds"]
    header += sorted({name for those in of_all for run in those.runs for name in _losses(run)})
    rows = [row for entry in results.recipes for row in _rows(results, entry)]
    text = io.StringIO()
    write_table(text, [header, *([row.get(name) for name in header] for row in rows)])
    write_atomically(path, text.getvalue())


def _rows(results: Results, entry: RecipeEntry) -> Iterator[dict[str, Any]]:
    """The rows of a recipe, by column: of its whole pre-trainings, and of those that ended before."""
    levels = [grid.cells[entry.label] for grid in results.grids if entry.label in grid.cells]
    factors = {_factor(title): level for of_grid in levels for title, level in of_grid.items()}
    latencies = {each.task: each.seconds for each in results.latencies if each.recipe == entry.label}
    ends: list[tuple[float, RecipeEntry | CheckpointEntry]] = [(1.0, entry)]
    ends += [(each.share, each) for each in entry.checkpoints]
    for share, those in ends:
        runs = {run.seed: run for run in those.runs}
        for score in those.scores:
            row = factors | _fine_tuned(entry, score)
            if score.initialisation == "pretrained":
                latency = latencies.get(score.task) if those is entry else None  # of the whole ones' models alone
                row |= {**_pretrained(runs.get(score.seed), share), "latency_seconds": latency}
            yield row
        for each in those.measurements:
            yield factors | _measured(entry, each) | _pretrained(runs.get(each.seed), share)


def _factor(title: str) -> str:
    """The column of a grid's factor."""
    return f"factor: {title}"


def _fine_tuned(entry: RecipeEntry, score: FinetuningScore) -> dict[str, Any]:
    """The cells of a fine-tuning, by column."""
    return {
        "recipe": entry.label,
        "seed": score.seed,
        "task": score.task,
        "finetune_seed": score.finetune_seed,
        "initialisation": score.initialisation,
        "learning_rate": score.learning_rate,
        "best_epoch": score.best_epoch,
        **{f"dev_{name}": value for name, value in score.dev.items()},
        **{f"test_{name}": value for name, value in score.test.items()},
        **{f"{split}_{what}_cut": getattr(cut, what) for split, cut in score.cut.items() for what in CUT},
        "transferred_tensors": score.transferred_tensors,
        "finetune_seconds": score.seconds,
        "parameters": entry.parameters,
        "flops_per_token": entry.flops_per_token,
    }


def _measured(entry: RecipeEntry, measured: MeasurementScore) -> dict[str, Any]:
    """The cells of a measurement, by column."""
    return {
        "recipe": entry.label,
        "seed": measured.seed,
        "task": measured.measure,
        "initialisation": "pretrained",
        **{f"test_{name}": value for name, value in measured.scores.items()},
        "parameters": entry.parameters,
        "flops_per_token": entry.flops_per_token,
    }


def _pretrained(run: PretrainingRun | None, share: float) -> dict[str, Any]:
    """The cells of a pre-training with a share of its budget, by column; none where there was none."""
    if run is None:
        return {}
    spent = {column: getattr(run, name) for name, column in COLUMNS.items()}
    return {SHARE: share, **spent, "held_out_loss": run.validation_loss, **_losses(run)}


def _losses(run: PretrainingRun) -> dict[str, float]:
    """The last held-out losses of a pre-training by column: of each objective, and in bits a byte where there are."""
    if not run.curve:
        return {}
    last = run.curve[-1]
    return {
        **{f"held_out_loss_{name}": value for name, value in last.losses.items()},
        **{f"bits_per_byte_{name}": value for name, value in last.bits_per_byte.items()},
    }
