"""The entry of a run in a list, read from its directory without torch: a thousand runs are listed in seconds."""

import time
from pathlib import Path
from typing import Any, Literal

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.durable import is_held
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.overview.lines import read_lines
from bakeoff.regular_files import read_regular
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.tensor_headers import headers
from bakeoff.unfinished import ASKED, FAILURE, TRIALS, finished_folder, unfinished_folder, was_dropped
from bakeoff.yaml_files import MOST_BYTES

Kind = Literal["pre-training", "fine-tuning", "search"]
RunState = Literal[
    "training", "finished", "cut short", "stopped early", "saved", "stopped", "dropped", "diverged", "damaged"
]

ENDED: tuple[RunState, ...] = ("finished", "cut short", "stopped early", "saved", "dropped", "diverged")
"""States in which a pre-trained run stays as it is."""

_ENDS = ("summary.json", "results.json", "metrics.jsonl", "environment.json", "search.json", ASKED)
"""Files whose times of modification give a run's age."""


class RunEntry(Config):
    """One run in a list; a field is None if the value is unknown or the kind of run has none."""

    path: Path
    """The run's directory; for a fine-tuning that has not finished, the directory that it will have."""
    kind: Kind
    """pre-training, fine-tuning or search."""
    state: RunState
    """training: a process is training it now; finished; cut short: finished with fewer steps than planned; stopped
    early: finished because its held-out loss had stopped falling; saved: the weights at some point of a training;
    stopped: not finished, and no process is training it; dropped: a trial that its search, which has ended, has not
    trained to the end; diverged: a training of a comparison or a search that is not tried again; damaged: see
    `problem`."""
    recipe: str | None = None
    """The recipe's name."""
    step: int | None = None
    """Optimizer steps done, as far as metrics.jsonl says."""
    steps: int | None = None
    """Optimizer steps planned."""
    tokens: int | None = None
    """Tokens seen."""
    loss: float | None = None
    """The last held-out loss; for a fine-tuning the loss on dev, for a search the held-out loss of the best trial."""
    loss_at_most: bool = False
    """The held-out loss of a pre-training is a bound, such as that of masked diffusion, and is ranked with no other."""
    metric: str | None = None
    """The metric by which a fine-tuning's weights are chosen on dev."""
    score: float | None = None
    """The metric's value on test."""
    parameters: int | None = None
    """Number of parameters of the model and its heads."""
    trials: int | None = None
    """Number of trials of a search so far."""
    age: float
    """Seconds since the run's files were last written."""
    problem: str | None = None
    """The error message of a damaged run."""


def folder_of(path: Path) -> Path:
    """The folder of a run's files; for an unfinished fine-tuning, a hidden folder beside `path`."""
    beside = unfinished_folder(path)
    if path.exists() or not beside.is_dir():
        return path
    return path.with_name(beside.name) if path.name else beside  # as the user names it


def entry_of(folder: Path, now: float | None = None) -> RunEntry:
    """The entry of a run's directory; a damaged run has an entry too.

    Args:
        folder: the folder of the run's files, see `folder_of`.
        now: the present time in seconds since the epoch; None: the clock's.
    """
    path = finished_folder(folder)
    names = {each.name for each in folder.iterdir()}
    kind: Kind = "pre-training"
    if "search.json" in names:
        kind = "search"
    elif path != folder or names & {"labels.json", "task.yaml", "results.json"}:
        kind = "fine-tuning"
    times = [(folder / name).stat().st_mtime for name in _ENDS if name in names]
    common: dict[str, Any] = {"path": path, "kind": kind}
    common["age"] = max(0.0, (time.time() if now is None else now) - max(times, default=folder.stat().st_mtime))
    read = {"search": _search, "fine-tuning": _finetuning, "pre-training": _pretraining}[kind]
    try:
        for name in checksums.absent(folder):
            checksums.require_present(folder / name)
        return RunEntry(**common, **read(folder, names))
    except (UserError, OSError) as error:
        return RunEntry(**common, state="damaged", problem=str(error))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        # What is there is JSON, but not what Bakeoff writes.
        return RunEntry(**common, state="damaged", problem=f"{folder}: not what Bakeoff writes there: {error!r}")


def _going_on(folder: Path) -> RunState:
    if is_held(folder):
        return "training"
    if (finished_folder(folder) / FAILURE).is_file():
        return "diverged"
    return "dropped" if was_dropped(folder) else "stopped"


def _pretraining(folder: Path, names: set[str]) -> dict[str, Any]:
    if "recipe.yaml" not in names:
        raise UserError(f"{folder / 'recipe.yaml'}: missing")
    checksums.read(folder / "recipe.yaml")
    environment = read_json(folder / "environment.json")
    facts: dict[str, Any] = {"recipe": environment["recipe"]["name"], "steps": environment.get("steps")}
    if "summary.json" in names:
        summary = read_json(folder / "summary.json")
        _require_weights(folder, names)
        planned = summary.get("planned_steps") or summary["steps"]
        return facts | {
            "state": _ended(summary, planned),
            "step": summary["steps"],
            "steps": planned,
            "tokens": summary["tokens"],
            "parameters": summary["parameters"],
            **_held_out(summary["validation"]),  # of an imported run there is none
        }
    lines = read_lines(folder / "metrics.jsonl")
    validations = [line for line in lines if line["kind"] == "validation"]
    last = lines[-1] if lines else {"step": 0, "tokens": 0}
    return facts | {
        "state": _going_on(folder),
        "step": last["step"],
        "tokens": last["tokens"],
        **_held_out(validations[-1] if validations else None),
    }


def _require_weights(folder: Path, names: set[str]) -> None:
    """Refuse weights that are absent or were cut; reading all of them would take too long for a list."""
    if "model.safetensors" not in names:
        raise UserError(f"{folder / 'model.safetensors'}: missing")
    headers(folder / "model.safetensors")


def _held_out(validation: dict[str, Any] | None) -> dict[str, Any]:
    """The held-out loss of a validation, and whether it is a bound."""
    return {} if validation is None else {"loss": validation["loss"], "loss_at_most": bool(validation.get("at_most"))}


def _ended(summary: dict[str, Any], planned: int) -> RunState:
    """The state of a finished pre-training, by its summary and the steps of its budget."""
    if summary.get("saved_at"):
        return "saved"
    if (summary.get("early_stopping") or {}).get("stopped"):
        return "stopped early"
    return "cut short" if summary["steps"] < planned else "finished"


def _finetuning(folder: Path, names: set[str]) -> dict[str, Any]:
    lines = read_lines(folder / "metrics.jsonl")
    if "results.json" in names:
        _require_weights(folder, names)
        results = read_json(folder / "results.json")
        rate, metric = results["learning_rate"], results["metric"]
        kept = [line for line in lines if line["learning_rate"] == rate] or lines
        best = [line for line in kept if line.get(metric) == results["scores"]["dev"].get(metric)] or kept[-1:]
        kept = [line for line in kept if line.get("epochs") == best[0].get("epochs")]  # of the training that was chosen
        return {
            "state": "finished",
            "recipe": results["recipe"],
            "step": kept[-1]["step"] if kept else None,
            "steps": planned_steps(kept[-1]) if kept else None,
            "loss": best[0]["loss"] if best else None,
            "metric": metric,
            "score": results["scores"]["test"].get(metric),  # none of an imported run
            "parameters": results["parameters"],
        }
    facts: dict[str, Any] = {"state": _going_on(folder), "recipe": _recipe_name(folder / "recipe.yaml")}
    if lines:
        facts |= {"step": lines[-1]["step"], "steps": planned_steps(lines[-1]), "loss": lines[-1]["loss"]}
    elif checkpoints := list_checkpoints(folder / "checkpoints"):  # it was stopped before its first look at dev
        facts |= {"step": checkpoint_step(checkpoints[-1])}
    return facts


def planned_steps(line: dict[str, Any]) -> int | None:
    """The planned steps of a fine-tuning, from a line of its metrics; None: unknown.

    Lines of older versions have the planned epochs alone, of which a training with few rows had more.
    """
    if "steps" in line:
        return int(line["steps"])
    epochs, epoch = line.get("epochs"), line.get("epoch")
    planned = round(line["step"] * epochs / epoch) if epochs and epoch else None
    return planned if planned is None or planned >= line["step"] else None


def _search(folder: Path, names: set[str]) -> dict[str, Any]:
    trials = [each for each in (folder / TRIALS).iterdir() if each.is_dir()] if TRIALS in names else []
    facts: dict[str, Any] = {"trials": len(trials)}
    if "results.json" in names:
        if "recipe.yaml" not in names:
            raise UserError(f"{folder / 'recipe.yaml'}: missing; the same command writes it again")
        results = read_json(folder / "results.json")
        losses = [trial["losses"][-1] for trial in results["trials"] if trial.get("losses")]
        return facts | {"state": "finished", "recipe": results["recipe"], "loss": min(losses, default=None)}
    read_json(folder / "search.json")
    return facts | {"state": _going_on(folder)}


def _recipe_name(path: Path) -> str | None:
    """The name in a recipe's file, from its line alone, because parsing the whole file is slow; None: not readable."""
    try:
        lines = read_regular(path, MOST_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    names = [line.removeprefix("name:").strip() for line in lines if line.startswith("name:")]
    return names[0].strip("'\"") if names else None
