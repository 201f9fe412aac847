"""The checkpoint of a stopped fine-tuning: the interrupted training, and the best of the trainings before it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from bakeoff.config import Record
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.runs.checkpoint import FileExtent, fill_optimizer, optimizer_tensors, written_whole
from bakeoff.runs.run import Run
from bakeoff.tasks.finetune_results import TrialResult
from bakeoff.tasks.fitting.fitting import Evaluation, Fit, Fitting, FittingPosition, FittingTrial
from bakeoff.tasks.unfinished_run import CHECKPOINT, PARTIAL, remove_checkpoint
from bakeoff.tensors import fill, load_tensors, save_tensors


class Look(Record):
    """A training's best look at dev, without its weights."""

    steps: int = Field(ge=1)
    """Optimizer steps of the training so far."""
    step: int = Field(ge=1)
    """Optimizer steps before the best look."""
    scores: dict[str, float]
    """All metrics on dev."""
    loss: float
    """The task's mean loss on dev."""
    trial: int = Field(ge=0)
    """The index of the training among the trainings of the fine-tuning."""


class FittingState(Record):
    """The content of state.json, which a checkpoint holds beside its tensors."""

    step: int = Field(ge=0)
    """Optimizer steps of the interrupted training so far."""
    since_best: int = Field(ge=0)
    """The number of looks at dev since the best one."""
    losses: list[float]
    """Losses of the steps since the last look."""
    tokens: int
    """The number of tokens read by the interrupted training."""
    seconds: float
    """Seconds of the interrupted training so far."""
    best: Look | None
    """The best look of the interrupted training; None: there is none yet."""
    chosen: Look | None
    """The best look of all trainings before the interrupted one; None: there is none."""
    trials: list[dict[str, Any]]
    """The results of the trainings before the interrupted one."""
    metrics: FileExtent
    """The part of metrics.jsonl that belongs to the checkpoint."""


class EndedTrials(NamedTuple):
    """The results of the trainings that have ended."""

    trials: list[TrialResult]
    """The result of each of these trainings."""
    best: Fit | None
    """The best training; None: there is none yet."""


def save_checkpoint(folder: Path, fitting: Fitting, found: EndedTrials) -> None:
    """Write a checkpoint whole or not at all, then remove the one before it."""
    before, run = _numbers(folder), Run(folder)
    partial, final = folder / PARTIAL, folder / f"{CHECKPOINT}{max(before, default=0) + 1}"
    run.metrics_file.sync()
    planned = [FittingTrial(each.learning_rate, each.epochs) for each in found.trials]
    state = {
        **vars(fitting.course),
        "best": _look(fitting.best, len(planned)),
        "chosen": None if found.best is None else _look(found.best, planned.index(found.best.trial)),
        "trials": [each.model_dump(mode="json") for each in found.trials],
        "metrics": run.metrics_file.mark(),
    }
    with written_whole(partial, final, state):
        save_tensors(fitting.head.state_dict(), partial / "model.safetensors")
        save_tensors(optimizer_tensors(fitting.optimizer), partial / "optimizer.safetensors")
        for name, fit in (("best", fitting.best), ("chosen", found.best)):
            if fit is not None:
                save_tensors(fit.weights, partial / f"{name}.safetensors")
    for number in before:
        remove_checkpoint(folder / f"{CHECKPOINT}{number}")


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; None: there is none."""
    numbers = _numbers(folder)
    return folder / f"{CHECKPOINT}{max(numbers)}" if numbers else None


def read_found(path: Path, run: Run, trials: Sequence[FittingTrial]) -> EndedTrials:
    """The results of the ended trainings in a checkpoint; later lines of metrics.jsonl are dropped.

    Raises:
        UserError: the checkpoint is damaged.
    """
    state = _state(path)
    run.metrics_file.restore(state["metrics"], state["step"])
    chosen = _fit(path, "chosen", state, trials)
    return EndedTrials([TrialResult.parse(each, f"{path}/state.json") for each in state["trials"]], chosen)


def fill_fitting(path: Path, fitting: Fitting) -> None:
    """Load a checkpoint's tensors and figures into the interrupted training.

    Raises:
        UserError: the checkpoint is damaged.
    """
    state = _state(path)
    fill(fitting.head, path / "model.safetensors")
    try:
        fill_optimizer(fitting.optimizer, path / "optimizer.safetensors")
    except ValueError as error:
        raise UserError(f"{path}: damaged ({error}); leave --resume out to begin anew") from None
    fitting.course = FittingPosition(**{name: state[name] for name in vars(fitting.course)})
    fitting.best = _fit(path, "best", state, [*[fitting.trial] * len(state["trials"]), fitting.trial])


def _numbers(folder: Path) -> list[int]:
    found = [path.name.removeprefix(CHECKPOINT) for path in folder.glob(f"{CHECKPOINT}*")]
    return sorted(int(number) for number in found if number.isdecimal())


def _state(path: Path) -> dict[str, Any]:
    return FittingState.check(read_json(path / "state.json"), str(path / "state.json"))


def _look(fit: Fit | None, trial: int) -> dict[str, Any] | None:
    if fit is None:
        return None
    best = fit.best
    return {"steps": fit.steps, "step": best.step, "scores": best.scores, "loss": best.loss, "trial": trial}


def _fit(path: Path, name: str, state: dict[str, Any], trials: Sequence[FittingTrial]) -> Fit | None:
    look = state[name]
    if look is None:
        return None
    if look["trial"] >= len(trials):
        raise UserError(f"{path}: damaged (there is no training {look['trial']}); leave --resume out to begin anew")
    best = Evaluation(look["step"], look["scores"], look["loss"])
    return Fit(trials[look["trial"]], look["steps"], best, load_tensors(path / f"{name}.safetensors"))
