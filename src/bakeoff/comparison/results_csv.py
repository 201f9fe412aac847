"""results.csv: the results of a comparison as a table, for those who make tables of their own."""

import io
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import MeasurementScore
from bakeoff.comparison.pretraining_run import SPENT, PretrainingRun
from bakeoff.comparison.results import SPLITS, FinetuningScore, RecipeEntry, Results
from bakeoff.display.spreadsheet import write_table
from bakeoff.durable import write_atomically


def write_csv(results: Results, path: Path) -> None:
    """Write `results.csv`: one row for each recipe, seed, task, fine-tuning seed and initialisation, or measurement."""
    scored = [score.test for entry in results.recipes for score in entry.scores]
    scored += [each.scores for entry in results.recipes for each in entry.measurements]
    metrics = sorted({name for scores in scored for name in scores})
    header = ["recipe", "seed", "task", "finetune_seed", "initialisation", "learning_rate", "best_epoch"]
    header += [f"{split}_{name}" for split in ("dev", "test") for name in metrics]
    header += [f"{split}_{what}_cut" for split in SPLITS for what in ("rows", "tokens")]
    header += ["transferred_tensors", "finetune_seconds", "parameters", "flops_per_token"]
    header += [f"pretrain_{name}" for name in SPENT[:5]] + [*SPENT[5:], "held_out_loss", "latency_seconds"]
    losses = sorted({name for entry in results.recipes for run in entry.runs for name in _losses(run)})
    rows = [[*header, *losses]]
    latencies = {(each.recipe, each.task): each.seconds for each in results.latencies}
    for entry in results.recipes:
        runs = {run.seed: run for run in entry.runs}
        for score in entry.scores:
            run = runs.get(score.seed) if score.initialisation == "pretrained" else None
            latency = latencies.get((entry.label, score.task)) if score.initialisation == "pretrained" else None
            rows.append(_row(entry, score, run, metrics, losses, latency))
        rows += [_measured(entry, each, runs.get(each.seed), metrics, losses) for each in entry.measurements]
    text = io.StringIO()
    write_table(text, rows)
    write_atomically(path, text.getvalue())


def _row(
    entry: RecipeEntry,
    score: FinetuningScore,
    run: PretrainingRun | None,
    metrics: list[str],
    losses: list[str],
    latency: float | None,
) -> list[Any]:
    """One row of results.csv; from scratch, the cells of the pre-training and of the latency are empty."""
    held_out = {} if run is None else _losses(run)
    return [
        *(entry.label, score.seed, score.task, score.finetune_seed, score.initialisation, score.learning_rate),
        *(score.best_epoch, *(split.get(name) for split in (score.dev, score.test) for name in metrics)),
        *(cut and getattr(cut, what) for cut in map(score.cut.get, SPLITS) for what in ("rows", "tokens")),
        *(score.transferred_tensors, score.seconds, entry.parameters, entry.flops_per_token),
        *(None if run is None else getattr(run, name) for name in (*SPENT, "validation_loss")),
        latency,
        *(held_out.get(name) for name in losses),
    ]


def _measured(
    entry: RecipeEntry, measured: MeasurementScore, run: PretrainingRun | None, metrics: list[str], losses: list[str]
) -> list[Any]:
    """The row of a measurement; the cells of a fine-tuning are empty."""
    held_out = {} if run is None else _losses(run)
    return [
        *(entry.label, measured.seed, measured.measure, None, "pretrained", None, None),
        *([None] * len(metrics) + [measured.scores.get(name) for name in metrics]),
        *([None] * 2 * len(SPLITS)),
        *(None, None, entry.parameters, entry.flops_per_token),
        *(None if run is None else getattr(run, name) for name in (*SPENT, "validation_loss")),
        None,
        *(held_out.get(name) for name in losses),
    ]


def _losses(run: PretrainingRun) -> dict[str, float]:
    """The last held-out losses of a pre-training by column: of each objective, and in bits a byte where there are."""
    if not run.curve:
        return {}
    last = run.curve[-1]
    return {
        **{f"held_out_loss_{name}": value for name, value in last.losses.items()},
        **{f"bits_per_byte_{name}": value for name, value in last.bits_per_byte.items()},
    }
