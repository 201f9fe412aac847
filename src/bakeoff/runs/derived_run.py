"""A finished run that is made of another run: a mean of its weights, or its weights at some point."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff.durable import fresh, holds_something, remove, sync
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.runs.run import Run


def require_free(path: Path, advice: str) -> None:
    """Refuse a place that is taken.

    Raises:
        UserError: the path holds something already; the message ends with the advice.
    """
    if holds_something(path):
        raise UserError(f"{path}: holds something already; {advice}")


def write_derived(
    run: Run,
    path: Path,
    module: PretrainingModel,
    environment: dict[str, Any],
    lines: Callable[[], list[dict[str, Any]]],
    summary: Callable[[dict[str, Any]], dict[str, Any]],
    advice: str,
) -> Run:
    """Write a finished run with a module's weights, whole or not at all.

    Args:
        run: the run that it comes from, whose recipe and tokenizer it has.
        path: the place of the new run.
        module: the weights.
        environment: the content of its environment.json.
        lines: makes the lines of its metrics.jsonl; the last is a validation of the weights.
        summary: makes its summary of the last line.
        advice: what to do where something stands at `path`.

    Raises:
        UserError: something stands at `path`, or another process is writing there.
    """
    folder = path.with_name(f".{path.name}.unfinished")
    try:
        with fresh(folder, path):
            made = Run.create(folder, run.recipe, run.tokenizer, environment)
            written = lines()
            for line in written:
                made.metrics_file.append(line)
            made.metrics_file.sync()
            made.finish(module, summary(written[-1]), path)
            sync(folder)
            require_free(path, advice)
            folder.rename(path)
            sync(path.absolute().parent)
    finally:
        remove(folder)
    return Run(path)
