"""What a search will cost, before it begins: `tune --dry-run`."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal

from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import counted
from bakeoff.jobs.choice import Asked
from bakeoff.jobs.forecast import Forecast, Size, Work
from bakeoff.jobs.runner import Say
from bakeoff.machine.limits import Limits
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.resources.threads import using_threads
from bakeoff.training.speed import FORECAST_SECONDS, step_times
from bakeoff.tuning.candidates import candidates, recipes_of
from bakeoff.tuning.findings import costs
from bakeoff.tuning.halving import most_work
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.ranges import Over
from bakeoff.tuning.results import SearchJournal, Trial
from bakeoff.tuning.tune import open_search
from bakeoff.unfinished import SEARCH

MOST_MEASURED = 4
"""The most kinds of trials whose speed is measured; the others are taken for their mean."""


def forecast_search(
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
) -> Forecast:
    """What `tune` will cost with the same arguments, by a short measurement or by trials that are done; writes nothing.

    Raises:
        UserError: a mistake in the arguments that `tune` would refuse before its first trial.
    """
    asked = Asked(jobs, ray)
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
    )
    planning, value_sets = search.planning, candidates(search.ranges, trials)
    shared = search.shares(asked, value_sets)
    with using_threads(None if shared is None else shared.threads):
        path = Path(out) / SEARCH
        known = SearchJournal.read(path).trials if path.is_file() else None
        planned = known or planning.trials(value_sets)
        vocabulary = open_corpus(str(corpus)).tokenizer.size
        seconds, speed = _seconds(planning, planned, seeds, search.say)
        size = Size.of(search.recipe, vocabulary, device)
    work = trial_work(search.recipe.name, planned, seeds, seconds, size)
    return Forecast.of([work], asked, shared, device, [speed], Limits.of(Path(out)))


def trial_work(name: str, trials: Sequence[Trial], seeds: int, seconds: float, size: Size) -> Work:
    """The trials of a search as work.

    Args:
        name: the recipe.
        trials: the trials, begun or not.
        seeds: number of seeds of each.
        seconds: seconds of a whole trial of one seed.
        size: the sizes of the recipe.
    """
    done = sum(trial.state != "stopped" for trial in trials) * seeds
    jobs = len(trials) * seeds - done
    whole = most_work([trial.evaluations for trial in trials]) - sum(trial.step / trial.steps for trial in trials)
    return Work(
        what="trial",
        of=name,
        jobs=jobs,
        done=done,
        seconds=max(0.0, whole) * seeds * seconds / max(1, jobs),
        kept=size.checkpoint,  # until the evaluation that the trial waits for
        running=size.running - size.checkpoint,
        memory=size.memory,
    )


def _seconds(planning: Planning, trials: Sequence[Trial], seeds: int, say: Say) -> tuple[float, str]:
    """Seconds of a whole trial of one seed, and where the number comes from."""
    name, steps = planning.recipe.name, fmean(trial.steps for trial in trials)
    done = sum(trial.step for trial in trials) * seeds
    if done:
        seconds = sum(trial.seconds for trial in trials) / done
        return seconds * steps, f"{name} {1000 * seconds:.3g} ms a step in {counted(done, 'step')} of its trials here"
    if planning.budget.minutes is not None:
        return 60 * planning.budget.minutes, f"{name} by its budget"
    kinds = {repr({key: each for key, each in trial.values.items() if costs(key)}): trial.values for trial in trials}
    value_sets = list(kinds.values())[:MOST_MEASURED]
    say(f"measuring the speed of {name}")
    recipes = recipes_of(planning.recipe, planning.ranges, value_sets, planning.option)
    times = step_times(recipes, open_corpus(planning.corpus), planning.device, FORECAST_SECONDS)
    seconds = fmean(time.seconds for time in times)
    return seconds * steps, f"{name} {1000 * seconds:.3g} ms a step, measured now"
