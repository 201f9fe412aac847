"""Trainings whose figures are kept in files, so that none is repeated and several processes share a folder."""

import json
from pathlib import Path
from typing import Any

import bakeoff
from bakeoff.durable import held, remove
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.training.initial_weights import Start


def measured(
    recipe: Recipe, corpus: str, path: Path, budget: Budget, seed: int, start: Start | None = None, **changes: Any
) -> dict[str, float] | None:
    """Held-out loss of the first objective in nats, and processor seconds; None: another process is training it.

    Args:
        recipe: the recipe.
        corpus: the corpus, which is trained and measured on.
        path: the training's run until it has been measured; its figures stay beside it, with the suffix .json.
        budget: the budget.
        seed: the seed.
        start: the run that the first weights come from; None: random weights.
        changes: overrides of the recipe for the measurement alone, as `overrides` of `bakeoff.evaluate`.
    """
    found = path.with_suffix(".json")
    if found.is_file():
        known: dict[str, float] = json.loads(found.read_text())
        return known
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with held(path.parent):
            run = bakeoff.pretrain(
                recipe, corpus, path, seed=seed, budget=budget, start=start, resume=True, progress=False
            )
            figures = bakeoff.evaluate(run.path, corpus=corpus, **changes)
            known = {"loss": figures["losses"][recipe.objective[0].kind], "seconds": Run(path).summary["work_seconds"]}
            found.write_text(json.dumps(known))
            remove(path)
            return known
    except UserError as error:
        if "another process" not in str(error):
            raise
        return None
