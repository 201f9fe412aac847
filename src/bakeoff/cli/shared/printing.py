"""Results as text or JSON."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bakeoff.display.terminal import show, tell, write_json
from bakeoff.display.wording import number

if TYPE_CHECKING:
    from bakeoff.runs.run import Run


def print_json(values: Any) -> None:
    """Print a result as JSON on standard output."""
    write_json(json.dumps(values, indent=2, ensure_ascii=False, default=str))


def print_table(rows: Mapping[str, Any], say: Callable[[str], None] = show) -> None:
    """Print names and values as two columns, on standard output, or on standard error with `tell` as `say`."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        say(f"{name:<{width}}  {value}")


def remark_unfinished(run: "Run") -> None:
    """Print a remark on standard error if a run is unfinished, with the step of its weights."""
    if not run.finished:
        step, steps = run.step(), run.planned_steps
        tell(f"bakeoff: {run.path}: not finished; its weights are those of step {step:,} of {steps:,}")


def losses_text(figures: Mapping[str, Any], title: str = "held-out") -> dict[str, str]:
    """The figures of a validation, one row for each objective."""
    from bakeoff.objectives.held_out import at_most

    rows = {}
    reasons = figures.get("no_number", {})
    for name, loss in figures["losses"].items():
        if name in reasons:
            rows[f"{title} {name}"] = f"no number: {reasons[name]}"
            continue
        most = at_most(name)
        parts = [f"loss {most}{loss:.4f}", f"accuracy {figures['accuracy'][name]:.4f}"]
        if name in figures["perplexity"]:
            bits = figures["bits_per_byte"][name]
            parts += [f"perplexity {most}{figures['perplexity'][name]:.2f}", f"bits per byte {most}{number(bits)}"]
            parts[-1] += f" ({reasons['bits_per_byte']})" if bits is None else ""
        rows[f"{title} {name}"] = "  ".join(parts)
    return rows


def set_text(changed: dict[str, Any]) -> dict[str, str]:
    """A row with the keys that were changed; empty where there are none."""
    return {"set": "  ".join(f"{key}={json.dumps(value)}" for key, value in changed.items())} if changed else {}


def simplest_text(kind: str, scores: dict[str, float], learned_from: str | None = None) -> dict[str, str]:
    """A row with the simplest answers, which need no model, and their scores.

    Args:
        kind: the kind of the task.
        scores: the scores.
        learned_from: train, or the data that are evaluated, which the row then names.
    """
    from bakeoff.tasks.registry import TASKS

    name = TASKS[kind].simplest
    if learned_from is not None:
        rows = "train" if learned_from == "train" else "these rows"
        name = name.replace("train", rows) if "train" in name else f"{name} (of {rows})"
    return {name: "  ".join(f"{metric} {value:.4f}" for metric, value in scores.items())}
