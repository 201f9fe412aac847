"""`tune`: the values of a recipe's keys with the lowest held-out loss."""

from pathlib import Path
from typing import Literal

from bakeoff.errors import UserError
from bakeoff.full_disk import full_disk
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.tuning.engine import TrialEngine
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.ranges import Over, parse_ranges, with_a_number
from bakeoff.tuning.results import TuningResults
from bakeoff.tuning.search import Progress, RecipeSearch
from bakeoff.workers.pool import Workers


def tune(
    recipe: Recipe | str | Path,
    corpus: str | Path,
    out: str | Path,
    *,
    over: Over = (),
    trials: int = 16,
    budget: Budget | None = None,
    jobs: int | Literal["auto"] = "auto",
    seed: int = 0,
    seeds: int = 1,
    for_budget: Budget | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    engine: TrialEngine | None = None,
    workers: Workers | None = None,
    start: Path | None = None,
) -> TuningResults:
    """Search the learning rate of a recipe, and whatever else is named, for the lowest held-out loss.

    Bad trials are stopped early. What is done is not done again: the same call goes on where an earlier one was
    stopped.

    Args:
        recipe: the recipe, its name or its file.
        corpus: a directory that `prepare` made, or several with weights; its validation split decides.
        out: directory of all trials, of recipe.yaml with the best values, results.json and report.html.
        over: ranges of further keys, `KEY=1e-4..1e-2` or `KEY=relu,gelu`, or lists of values by keys.
        trials: how many, at most.
        budget: what one whole trial may spend; None: the recipe's own.
        jobs: trials side by side, each a process of its own; auto: as many as suit this machine. The search is the
            same, for the threads of a trial are settled at the start and stay.
        seed: of every trial.
        seeds: of every trial, the first being `seed`; its loss is the mean over them.
        for_budget: of the training that is to come: recipe.yaml has it, with the rate carried there by the rule of
            `optimization.carrying`. None: the recipe's own budget stays, and the rate is the best trial's.
        device: auto, cpu, cuda or mps.
        progress: told a line now and then.
        engine: what trains, one at a time and in this process; left out: Bakeoff itself.
        workers: processes that train side by side, in place of `jobs`; they are left running.
        start: the run that the first weights of every trial come from; None: chance.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the arguments, found before anything is trained; or `out` was made with other ones, and
            the message names what differs.
        Diverged: every trial did.
    """
    for option, number in (("--trials", trials), ("--seeds", seeds), ("--jobs", 1 if jobs == "auto" else jobs)):
        if number < 1:
            raise UserError(f"{option} {number}: give at least 1")
    loaded = with_a_number(recipe if isinstance(recipe, Recipe) else load_recipe(recipe))
    ranges = parse_ranges(over, loaded, trials)
    say = progress or (lambda line: None)
    own = budget or loaded.training.budget
    planning = Planning(loaded, ranges, str(corpus), own, device, engine or TrialEngine(), say)
    search = RecipeSearch(planning, Path(out), range(seed, seed + seeds), for_budget, start, progress)
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return search.run(trials, jobs if engine is None and workers is None else None, workers)
