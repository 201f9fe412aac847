"""One search for the values with the lowest held-out loss; its trials are runs."""

import signal
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bakeoff import checksums
from bakeoff.config import with_defaults
from bakeoff.corpus.mixture import open_corpus
from bakeoff.durable import held, holds_something, own_folder, remove
from bakeoff.errors import Diverged, Interrupted
from bakeoff.jobs.choice import Asked, corpus_folders
from bakeoff.jobs.job import Job, Note, Outcome, Workers
from bakeoff.jobs.remaining import Load
from bakeoff.jobs.runner import Runner, Say
from bakeoff.machine.capacity import usable_cores
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.resources.threads import SharedMachine, using_threads
from bakeoff.same_settings import require_same
from bakeoff.tuning.candidates import Values, candidates, recipe_with, shown
from bakeoff.tuning.engine import TrialPart
from bakeoff.tuning.findings import best, cautions, coming_cost
from bakeoff.tuning.halving import chosen, going_on, later_parts
from bakeoff.tuning.outputs import budget_change, recipe_for_budget, write_outputs
from bakeoff.tuning.planning import Planning
from bakeoff.tuning.results import SearchJournal, SeedRun, Trial, TuningResults
from bakeoff.unfinished import ELSEWHERE, SEARCH, TRIALS, taken


class RecipeSearch:
    """One search in its directory, from its plan to its best values.

    Args:
        planning: plan of the search.
        out: directory of all trials.
        seeds: seeds of every trial.
        for_budget: budget of the coming training, for recipe.yaml; None: the recipe's own budget stays.
        start: the run that the first weights of every trial come from; None: random weights.
        progress: function that prints a line of progress; None: nothing is shown.
    """

    def __init__(
        self,
        planning: Planning,
        out: Path,
        seeds: range,
        for_budget: Budget | None,
        start: Path | None,
        progress: Say | None,
    ) -> None:
        self.planning, self.out, self.seeds, self.for_budget, self.start = planning, out, seeds, for_budget, start
        self.recipe, self.ranges, self.corpus = planning.recipe, planning.ranges, planning.corpus
        self.budget, self.device, self.engine = planning.budget, planning.device, planning.engine
        self.progress, self.say, self.measured_as = progress, planning.say, planning.measured_as

    def run(self, trials: int, asked: Asked | None, workers: Workers | None) -> TuningResults:
        """Run the whole search; steps that may fail for a user's mistake come first."""
        value_sets = candidates(self.ranges, trials)
        planned = self.planning.recipes(value_sets)  # a mistake in a range is reported before all others
        if self.for_budget is not None:
            for recipe in planned:
                recipe_with(recipe, budget_change(recipe, self.for_budget), f"--for-budget {self.for_budget}")
        if not (self.out / SEARCH).is_file() and holds_something(self.out, besides=SEARCH):
            checksums.require_present(self.out / SEARCH)
            raise taken(self.out, "something else", ELSEWHERE)
        shared = self.shares(asked, value_sets)
        with using_threads(None if shared is None else shared.threads):
            return self._search(trials, value_sets, asked, shared, workers)

    def shares(self, asked: Asked | None, value_sets: list[Values]) -> SharedMachine | None:
        """Number of jobs and threads; None: one trial at a time, or the caller's workers, with present threads."""
        if asked is None:
            return None
        path = self.out / SEARCH
        known = SearchJournal.read(path) if path.is_file() else None
        most = len(value_sets) * len(self.seeds)
        several = min(asked.most or usable_cores(), most)
        if known is not None and known.threads is None:  # an older version's, whose trials had their share of the cores
            return SharedMachine(max(1, usable_cores() // several), [self.device] * several)
        here = asked if asked.most is None else replace(asked, jobs=several)
        vocabulary, threads = open_corpus(self.corpus).tokenizer.size, None if known is None else known.threads
        shared = here.shares([self.recipe], vocabulary, self.device, threads)
        return shared and shared._replace(devices=shared.devices[:most])

    def _search(
        self,
        trials: int,
        value_sets: list[Values],
        asked: Asked | None,
        shared: SharedMachine | None,
        workers: Workers | None,
    ) -> TuningResults:
        self.fingerprint = self.engine.fingerprint(self.corpus)
        settings = {
            "recipe": self.recipe.model_dump(mode="json"),
            "corpus": self.fingerprint,
            "budget": str(self.budget),
            "trials": trials,  # before the ranges, which follow from it where none is given
            "over": {each.key: each.text for each in self.ranges},
            "seed": self.seeds[0],
            "seeds": len(self.seeds),
            "device": self.device,
            "teacher": self.planning.teachers(value_sets),
            **({} if self.start is None else {"start": str(self.start)}),
        }
        path = self.out / SEARCH
        begun = path.is_file()
        if begun:
            self.journal = self._known(path, settings)
        else:
            threads = torch.get_num_threads() if workers is None else workers.threads
            planned = [self._with_seeds(trial) for trial in self.planning.trials(value_sets)]
            self.journal = SearchJournal(settings=settings, trials=planned, threads=threads)
        self.recipes = self.planning.recipes([trial.values for trial in self.journal.trials])
        made = not self.out.exists()
        own_folder(self.out / TRIALS, self.out)
        self.out.mkdir(parents=True, exist_ok=True)
        try:
            with held(self.out):
                if begun:
                    self.journal = SearchJournal.read(path)  # another process may have written it until now
                else:
                    self.journal.write(path)
                self.say(coming_cost(self.journal.trials, len(self.seeds), self.budget))
                if begun:
                    self.say(f"{sum(trial.begun for trial in self.journal.trials)} of them begun before")
                with nullcontext() if asked is None else self._workers_of_search(asked, shared) as pool:
                    runner = Runner(workers or pool, self.engine.carry_out, self.progress, "trial")
                    self.say = runner.say
                    return self._run(runner)
        except BaseException as error:
            # The caller's workers are stopped later, and may have begun a trial until then.
            kept = self._has_trials() or begun or workers is not None
            if not kept:
                self._remove(made)
            if not isinstance(error, Interrupted | KeyboardInterrupt):
                raise
            # The advice of a single run's interruption does not continue a search.
            number = error.signal_number if isinstance(error, Interrupted) else signal.SIGINT
            what = "what is done is kept, and the same command goes on" if kept else "nothing was done yet"
            raise Interrupted(f"{self.out}: interrupted; {what}", number) from None

    def _workers_of_search(self, asked: Asked, shared: SharedMachine | None) -> AbstractContextManager[Workers | None]:
        read = [*corpus_folders(self.corpus), *([] if self.start is None else [self.start])]
        minutes = self.budget.minutes is not None
        return asked.workers(shared, self.out, read, self.device, minutes=minutes, say=self.say)

    def _known(self, path: Path, settings: dict[str, Any]) -> SearchJournal:
        """The journal of an earlier call.

        Raises:
            UserError: the earlier call had other settings.
        """
        journal = SearchJournal.read(path)
        begun = {"seeds": 1, "teacher": settings["teacher"], **journal.settings}  # older versions kept neither
        if "recipe" in begun:
            begun["recipe"] = with_defaults(begun["recipe"], Recipe)
        teachers = [f"teacher.{name}" for name in settings["teacher"]]
        require_same(self.out, begun, settings, f"give the same again, or {ELSEWHERE}", teachers)
        return journal

    def _run(self, runner: Runner) -> TuningResults:
        """Train all trials up to the first evaluation, then the better ones up to the next, and so on to the end."""
        total = len(self.journal.trials)
        alive = list(range(total))
        for evaluation in range(len(self.journal.trials[0].evaluations)):
            if evaluation:
                losses = [self._loss_at(number, evaluation - 1) for number in alive]
                going = [alive[index] for index in chosen(losses, going_on(total, evaluation - 1))]
                for number in {*alive} - {*going}:
                    for seed in self.seeds:
                        remove(self._directory(number, seed) / "checkpoints", self.out)  # nobody goes on from them
                alive = going
            waiting = [
                (number, seed)
                for number in alive
                for index, seed in enumerate(self.seeds)
                if self.journal.trials[number].waits_for(index, evaluation)
            ]
            self.evaluation, self.waiting = evaluation, waiting
            runner.run(self, len(waiting))
        return self._publish()

    def _loss_at(self, number: int, evaluation: int) -> float | None:
        trial = self.journal.trials[number]
        return trial.losses[evaluation] if evaluation < len(trial.losses) else None

    def _with_seeds(self, trial: Trial) -> Trial:
        return trial.model_copy(update={"runs": [SeedRun() for _ in self.seeds]}) if len(self.seeds) > 1 else trial

    def _name(self, number: int, seed: int) -> str:
        name = self.journal.trials[number].name
        return f"{name}-seed-{seed}" if len(self.seeds) > 1 else name

    def _directory(self, number: int, seed: int) -> Path:
        return self.out / TRIALS / self._name(number, seed)

    def next(self) -> tuple[tuple[int, int], Job] | None:
        """See `bakeoff.jobs.runner.Queue`; a job's key is the number of the trial, and the seed."""
        key = self.waiting.pop(0) if self.waiting else None
        return None if key is None else (key, self._part(*key))

    def load(self, key: Any) -> Load:
        """See `bakeoff.jobs.runner.Queue`."""
        marks = [0, *self.journal.trials[key[0]].evaluations]
        return Load("trial", self.recipe.name, marks[self.evaluation + 1] - marks[self.evaluation])

    def ahead(self) -> list[Load]:
        """See `bakeoff.jobs.runner.Queue`; of later evaluations as many trials as may go on."""
        later = later_parts([trial.evaluations for trial in self.journal.trials], self.evaluation)
        loads = [Load("trial", self.recipe.name, steps) for steps in later for _ in self.seeds]
        return [*map(self.load, self.waiting), *loads]

    def noted(self, key: Any, note: Note) -> None:
        """See `bakeoff.jobs.runner.Queue`."""

    def _part(self, number: int, seed: int) -> TrialPart:
        trial = self.journal.trials[number]
        return TrialPart(
            title=f"trial {self._name(number, seed)}",
            recipe=self.recipes[number].model_dump(mode="json"),
            corpus=self.corpus,
            out=self._directory(number, seed),
            seed=seed,
            device=self.device,
            budget=str(Budget(steps=trial.steps)),
            until=trial.evaluations[self.evaluation],
            waited_at=trial.evaluations[self.evaluation - 1] if self.evaluation else 0,
            start=self.start,
            measured_as=self.measured_as,
        )

    def ended(self, key: Any, outcome: Outcome) -> None:
        """Write the outcome of one seed of a trial into the journal."""
        number, seed = key
        trials = list(self.journal.trials)
        trial = trials[number].after(outcome, self.seeds.index(seed))
        trials[number] = trial
        self.journal = self.journal.model_copy(update={"trials": trials})
        self.journal.write(self.out / SEARCH)
        at = f"step {trial.evaluations[self.evaluation]:,} of {trial.steps:,}"
        what = "diverged" if outcome.loss is None else f"{at}: held-out loss {outcome.loss:.4f}"
        self.say(f"trial {self._name(number, seed)} ({shown(trial.values)}): {what}")

    def _publish(self) -> TuningResults:
        """Write recipe, results and report.

        Raises:
            Diverged: every trial diverged.
        """
        trials = self.journal.trials
        number = best(trials)
        if number is None:
            message = next(trial.diverged for trial in trials if trial.diverged is not None)
            raise Diverged(f"{self.out}: every trial diverged; search lower learning rates. The first: {message}")
        recipe, transferred_rate = recipe_for_budget(
            self.planning, self.recipes[number], trials[number].steps, self.for_budget
        )
        results = TuningResults(
            recipe=self.recipe.name,
            corpus=self.corpus,
            corpus_fingerprint=self.fingerprint,
            budget=str(self.budget),
            seed=self.seeds[0],
            seeds=len(self.seeds),
            measured_as=list(self.measured_as),
            ranges=self.ranges,
            trials=trials,
            states=[trial.state for trial in trials],
            best=number,
            before={each.key: each.own for each in self.ranges},
            seconds=round(sum(trial.seconds for trial in trials), 3),
            tokens=sum(trial.tokens for trial in trials),
            full_trainings=round(sum(trial.step / trial.steps for trial in trials) * len(self.seeds), 3),
            environment=self.engine.environment(self.device),
            cautions=cautions(self.ranges, trials, trials[number], self.budget),
            transferred=transferred_rate,
        )
        write_outputs(results, recipe, self.out)
        return results

    def _has_trials(self) -> bool:
        """Whether a trial has been trained here, by this call or an earlier one."""
        folder = self.out / TRIALS
        begun = folder.is_dir() and any((trial / "recipe.yaml").is_file() for trial in folder.iterdir())
        return begun or any(trial.begun for trial in self.journal.trials)

    def _remove(self, made: bool) -> None:
        """Remove the files of a search without trials; the directory too, if this call made it."""
        remove(self.out / TRIALS, self.out)
        for name in (SEARCH, "bakeoff.sha256"):
            (self.out / name).unlink(missing_ok=True)
        if made and self.out.is_dir():
            self.out.rmdir()
