"""`tune`: the values of a recipe's keys with the lowest held-out loss."""

from pathlib import Path
from typing import Literal

from bakeoff.config import require_seed
from bakeoff.errors import UserError, path_of, require_object
from bakeoff.full_disk import full_disk
from bakeoff.jobs.choice import Asked
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
    ray: str | None = None,
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
        over: keys to search too, with a range, KEY=0.01..0.3, or values, KEY=0.1,0.2. The learning rate is always
            searched: in the range given here, or on a grid through the recipe's rate up to eight times that rate, and
            down as far, or one step less where the number of trials is even.
        trials: maximal number of trials.
        budget: budget of one complete trial, such as tokens=5M, flops=1e15, minutes=5 or steps=1000; None: the
            recipe's.
        jobs: number of trials that run at the same time, each in its own process; the results stay the same. auto: as
            many as there are cores, with one thread each, for small models; one at a time for large ones; one for each
            GPU.
        ray: Ray cluster that trains in place of this machine, on all its machines, which share the disk of `out`:
            local, auto or HOST:PORT (docs/scale.md); `jobs` is then the most at the same time. None: this machine
            trains.
        seed: seed of everything that is random.
        seeds: number of seeds of each trial, counted from `seed`; the loss of a trial is the mean over them.
        for_budget: budget of the training that is planned. The resulting recipe has this budget, and the learning rate
            is scaled to it. None: the recipe's budget and the best trial's rate.
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
    require_seed(seed)
    for name, given in (("budget", budget), ("for_budget", for_budget)):
        require_object(name, given, Budget, "one such as bakeoff.Budget(minutes=10)")
    if ray is None:  # else Ray has started the others
        require_one_process(out)
    asked = Asked(jobs, ray)
    asked.require_cluster()
    search = open_search(
        recipe,
        corpus,
        out,
        over=over,
        trials=trials,
        budget=budget,
        seed=seed,
        seeds=seeds,
        for_budget=for_budget,
        device=device,
        progress=progress,
        engine=engine,
        start=start,
    )
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return search.run(trials, asked if engine is None and workers is None else None, workers)


def open_search(
    recipe: Recipe | str | Path,
    corpus: str | Path,
    out: str | Path,
    *,
    over: Over,
    trials: int,
    budget: Budget | None,
    seed: int,
    seeds: int,
    for_budget: Budget | None,
    device: str,
    progress: Say | None,
    engine: TrialEngine | None = None,
    start: Path | None = None,
) -> RecipeSearch:
    """The search of `tune`, with its plan, before anything is written; arguments as there.

    Raises:
        UserError: a mistake in the arguments.
    """
    for option, number in (("--trials", trials), ("--seeds", seeds)):
        if number < 1:
            raise UserError(f"{option} {number}: give at least 1")
    loaded = with_a_number(recipe if isinstance(recipe, Recipe) else load_recipe(recipe))
    ranges, say = parse_ranges(over, loaded, trials), progress or (lambda line: None)
    trial_budget = budget or loaded.training.budget
    planning = Planning(loaded, ranges, str(corpus), trial_budget, device, engine or TrialEngine(), say)
    return RecipeSearch(planning, path_of(out, "out"), range(seed, seed + seeds), for_budget, start, progress)
