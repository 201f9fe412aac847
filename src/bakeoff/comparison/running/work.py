"""One training of a comparison, in this process or in another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff.comparison.plan import TaskPlan
from bakeoff.comparison.running.correction import Corrected, FirstTenth, Pace
from bakeoff.comparison.running.engine import Engine
from bakeoff.config import Config
from bakeoff.errors import Diverged
from bakeoff.optimization.budget import Budget
from bakeoff.training.progress import Shown

Note = Callable[[dict[str, Any]], None]

LOOKED = {"looked": True}
"""The note that a training goes on as planned, after its speed was checked."""


class WorkOrder(Config):
    """The order of one training, complete but for the recipe."""

    out: Path
    """Directory of the run."""
    seed: int
    """Seed of the training's random numbers."""
    corpus: Path
    """The directory of the corpus."""
    device: str
    """Device of the training: auto, cpu, cuda or mps."""
    budget: str | None = None
    """The budget of a pre-training, such as `steps=1000`; None: a fine-tuning."""
    pace: Pace | None = None
    """The planned speed of a pre-training whose speed is to be compared; None: no comparison is needed."""
    task: TaskPlan | None = None
    """The task of a fine-tuning; None: a pre-training."""
    start: Path | None = None
    """The run that the first weights of a pre-training come from; None: random weights."""
    source: Path | None = None
    """The pre-trained run that a fine-tuning starts from; None: random weights."""


class JobOutcome(Config):
    """The outcome of a training; both fields are None when it has finished."""

    diverged: str | None = None
    """The error message of a training that diverged; None: it did not."""
    work_seconds: float | None = None
    """Measured seconds of work of a step, if the training has to begin anew with other steps; None: it has not."""


def carry_out(order: WorkOrder, recipe: Any, engine: Engine, progress: Shown, note: Note) -> JobOutcome:
    """Run the pre-training or the fine-tuning of an order with the engine.

    Args:
        order: the order.
        recipe: the recipe of the training.
        engine: the engine that trains.
        progress: whether progress is shown, or a function that is told of it.
        note: a function that is called with `LOOKED` when a training goes on as planned.

    Raises:
        UserError: the engine has refused the training.
        Interrupted: SIGINT or SIGTERM came.
    """
    common: dict[str, Any] = {"seed": order.seed, "device": order.device, "progress": progress}
    try:
        if order.task is None:
            assert order.budget is not None
            if order.start is not None:
                common["start"] = order.start
            if order.pace is not None:
                common["watch"] = FirstTenth(order.pace, lambda: note(LOOKED))
            engine.pretrain(recipe, order.corpus, order.out, budget=Budget.parse_text(order.budget), **common)
        else:
            source = recipe if order.source is None else order.source
            engine.finetune(source, order.task, order.out, corpus=order.corpus, **common)
    except Corrected as found:
        return JobOutcome(work_seconds=found.work_seconds)
    except Diverged as error:
        return JobOutcome(diverged=str(error))
    return JobOutcome()


def serve(values: dict[str, Any], note: Note) -> dict[str, Any]:
    """Run an order in a worker's process; `values` has the keys order, recipe and shown. See `bakeoff.workers`."""
    from bakeoff.recipe import Recipe

    order = WorkOrder.parse(values["order"], "order")
    recipe = Recipe.parse(values["recipe"], str(order.out))
    return carry_out(order, recipe, Engine(), note if values["shown"] else False, note).model_dump()
