"""A finished run that is made of another run: a mean of its weights, or its weights at some point."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from bakeoff.runs.run import Run
from bakeoff.unfinished import unfinished


def write_derived(
    run: Run,
    path: Path,
    weights: Mapping[str, Tensor],
    environment: dict[str, Any],
    lines: Sequence[dict[str, Any]],
    summary: dict[str, Any],
    advice: str,
) -> Run:
    """Write a finished run with a module's weights, whole or not at all.

    Args:
        run: the run that it comes from, whose recipe and tokenizer it has.
        path: the place of the new run.
        weights: its weights.
        environment: the content of its environment.json.
        lines: the lines of its metrics.jsonl.
        summary: its summary.
        advice: what to do where something stands at `path`.

    Raises:
        UserError: something stands at `path`, or another process is writing there.
    """
    with unfinished(path, advice=advice) as folder:
        made = Run.create(folder, run.recipe, run.tokenizer, environment)
        for line in lines:
            made.metrics_file.append(line)
        made.metrics_file.sync()
        made.finish(weights, summary, path)
    return Run(path)
