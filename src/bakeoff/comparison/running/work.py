"""One training of a comparison, as this process or another one does it."""

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
"""The note of a training that goes on as it was planned."""


class WorkOrder(Config):
    """What is to be trained, but for the recipe."""

    out: Path
    """Directory of the run."""
    seed: int
    """Seed of everything that is random."""
    corpus: Path
    """The directory of the corpus."""
    device: str
    """auto, cpu, cuda or mps."""
    budget: str | None = None
    """What a pre-training may spend; None: a fine-tuning."""
    pace: Pace | None = None
    """The planned speed of a pre-training whose speed is to be compared; None: no comparison is needed."""
    task: TaskPlan | None = None
    """The task of a fine-tuning; None: a pre-training."""
    start: Path | None = None
    """The run that the first weights of a pre-training come from; None: random weights."""
    source: Path | None = None
    """The pre-trained run that a fine-tuning starts from; None: random weights."""


class JobOutcome(Config):
    """What came of a training; empty where it has finished."""

    diverged: str | None = None
    """What was said where its loss was not a number any more."""
    work_seconds: float | None = None
    """What a step has taken, where it is to begin anew with another number of steps."""


def carry_out(order: WorkOrder, recipe: Any, engine: Engine, progress: Shown, note: Note) -> JobOutcome:
    """Do what an order asks for, a pre-training or a fine-tuning, with the engine.

    Args:
        order: what.
        recipe: the recipe.
        engine: what trains.
        progress: whether progress is shown, or what is told of it.
        note: told `LOOKED`.

    Raises:
        UserError, Interrupted: as the engine does.
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
    """Do the work in another process; see `bakeoff.workers`."""
    from bakeoff.recipe import Recipe

    order = WorkOrder.parse(values["order"], "order")
    recipe = Recipe.parse(values["recipe"], str(order.out))
    return carry_out(order, recipe, Engine(), note if values["shown"] else False, note).model_dump()
