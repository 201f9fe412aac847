"""`tune`: the values of a recipe's keys with the lowest held-out loss."""

from pathlib import Path
from typing import Literal

from bakeoff.errors import UserError
from bakeoff.full_disk import full_disk
from bakeoff.jobs.job import Workers
from bakeoff.jobs.runner import Say
from bakeoff.machine.launch import require_one_process
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.tuning.engine import TrialEngine
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.ranges import Over, parse_ranges, with_a_number
from bakeoff.tuning.results import TuningResults
from bakeoff.tuning.search import RecipeSearch


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
    progress: Say | None = None,
    engine: TrialEngine | None = None,
    workers: Workers | None = None,
    start: Path | None = None,
) -> TuningResults:
    """Search the learning rate of a recipe, and whatever else is named, for the lowest held-out loss.

    Bad trials are stopped early. Finished work is not repeated: the same call goes on where an earlier one was stopped.

    Args:
        recipe: the recipe, its name or its file.
        corpus: a directory that `prepare` made, or several with weights; its validation split decides.
        out: directory of all trials, of recipe.yaml with the best values, results.json and report.html.
        over: ranges of further keys, `KEY=1e-4..1e-2` or `KEY=relu,gelu`, or lists of values by keys.
        trials: the most trials.
        budget: budget of one whole trial; None: the recipe's own.
        jobs: number of trials side by side, each in its own process; auto: as many as suit this machine. The
            number does not change the results, because the threads of a trial are fixed at the start of the search.
        seed: the first seed of every trial.
        seeds: number of seeds of every trial, from `seed` on; a trial's loss is the mean over its seeds.
        for_budget: budget of a coming training: recipe.yaml gets it, with the rate transferred to it by the rule of
            `optimization.rate_transfer`. None: the recipe's own budget stays, with the rate of the best trial.
        device: auto, cpu, cuda or mps.
        progress: function that prints a line of progress; None: nothing is shown.
        engine: engine that trains one trial at a time in this process; None: Bakeoff's.
        workers: workers that train side by side, instead of `jobs`, see `bakeoff.jobs`; they are left running.
        start: the run that the first weights of every trial come from; None: random weights.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the arguments, before anything is trained; or `out` was made with other arguments,
            and the message names the difference.
        Diverged: every trial diverged.
    """
    require_one_process(out)
    for option, number in (("--trials", trials), ("--seeds", seeds), ("--jobs", 1 if jobs == "auto" else jobs)):
        if number < 1:
            raise UserError(f"{option} {number}: give at least 1")
    loaded = with_a_number(recipe if isinstance(recipe, Recipe) else load_recipe(recipe))
    ranges = parse_ranges(over, loaded, trials)
    say = progress or (lambda line: None)
    trial_budget = budget or loaded.training.budget
    planning = Planning(loaded, ranges, str(corpus), trial_budget, device, engine or TrialEngine(), say)
    search = RecipeSearch(planning, Path(out), range(seed, seed + seeds), for_budget, start, progress)
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return search.run(trials, jobs if engine is None and workers is None else None, workers)
