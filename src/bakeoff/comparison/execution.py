"""Running a plan: every recipe, seed and task under one budget, resumed where an earlier call was stopped."""

import json
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bakeoff import checksums
from bakeoff.comparison.collect import ComparisonFacts, collect
from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.plan import Plan, TaskPlan, directory_name
from bakeoff.comparison.results import RESULTS, Failure, Floor, Results
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.floors import floors
from bakeoff.comparison.running.jobs import Jobs
from bakeoff.comparison.running.place import require_own_place
from bakeoff.comparison.running.searches import Searches
from bakeoff.comparison.running.spendable import Spendable
from bakeoff.comparison.running.starts import Starts
from bakeoff.comparison.running.trainings import MODULES, Trainings
from bakeoff.config import Record, differing
from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import quoted
from bakeoff.durable import held
from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.json_files import read_json
from bakeoff.runs.records import PretrainingEnvironment
from bakeoff.workers.launch import require_one_process
from bakeoff.workers.pool import Workers

if TYPE_CHECKING:
    from bakeoff.resources.threads import SharedMachine

Progress = Callable[[str], None]


def compare(
    plan: Plan | str | Path,
    out: str | Path,
    *,
    jobs: int | Literal["auto"] = "auto",
    progress: Progress | None = None,
    engine: Engine | None = None,
    report: Callable[[Results, Path], None] | None = None,
) -> Results:
    """Pre-train and fine-tune everything that a plan asks for, and report.

    Seeds are the outer loop, so that a machine that slows down hits all recipes alike; the report is written anew after
    each seed. What has finished is not run again, and an interrupted pre-training goes on where it was.

    Args:
        plan: the plan, or its file.
        out: directory of all runs and of report.html, results.csv and results.json.
        jobs: number of trainings side by side, each in its own process; auto: as many as suit this machine. The results
            do not depend on it, because the threads of a training are settled at the start and stay.
        progress: a function that gets one line before each job.
        engine: the object that trains, one job at a time and in this process; left out: Bakeoff itself.
        report: the function that writes the report; left out: `write_report`.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the plan or its files, found before anything is trained; or `out` holds runs with other
            settings, and the message names what differs; or every recipe diverged. One that diverges among others is
            left out, and the report says so.
    """
    require_one_process(out)
    if jobs != "auto" and jobs < 1:
        raise UserError(f"--jobs {jobs}: give at least 1")
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    asked = jobs if engine is None else None
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return _Comparison(plan, Path(out), asked, progress, engine or Engine(), report or _report).run()


def _report(results: Results, path: Path) -> None:
    from bakeoff.comparison.reporting.report import write_report

    write_report(results, path)


def _threads(shared: "SharedMachine | None") -> AbstractContextManager[None]:
    from bakeoff.resources.threads import using_threads

    return nullcontext() if shared is None else using_threads(shared.threads)


def _trained_with(out: Path) -> int | None:
    """The number of threads of a comparison's runs, which is the same for all; None: there is no run yet."""
    for path in sorted((out / "runs").glob("*/seed-*/pretrain/environment.json")):
        return int(PretrainingEnvironment.check(read_json(path), str(path))["threads"])
    return None


class KeptTask(Record):
    """A task's facts and floors, which one call of `compare` keeps in a file for the next."""

    settings: dict[str, Any]
    """The task's settings, with checksums of its files; other settings make the rest void."""
    facts: dict[str, Any]
    """The task's facts, see `TaskFacts`."""
    floors: list[dict[str, Any]]
    """The task's floors, see `Floor`."""


class _Comparison:
    """One call of `compare`, with all that it needs from the check of the plan to the report."""

    def __init__(
        self,
        plan: Plan,
        out: Path,
        jobs: int | Literal["auto"] | None,
        progress: Progress | None,
        engine: Engine,
        report: Callable[[Results, Path], None],
    ) -> None:
        self.plan, self.out, self.asked, self.engine, self.report = plan, out, jobs, engine, report
        self.progress = progress
        self.say: Progress = progress or (lambda line: None)

    def run(self) -> Results:
        """Run the comparison; the checks that find mistakes in the plan come before any training."""
        plan = self.plan
        require_own_place(self.out)
        starts = Starts(plan, self.out, self.engine, self.say)
        self.recipes = {item.name: starts.recipe(item) for item in plan.recipes}
        self._require_finetunable()
        self.corpus = self.engine.corpus(plan.corpus, list(self.recipes.values()), plan.device)
        self.starts = starts.facts(self.recipes)
        self.budget = Spendable(plan.budget, self.out, self.say)
        self.shared = self._side_by_side()
        begun = {name: (Path(facts.run), facts.weights) for name, facts in self.starts.items()}
        self.searches = Searches(plan, self.out, self.recipes, self.corpus.fingerprint, self.engine, self.say, begun)
        with _threads(self.shared):
            self.searches.require_possible()
            self.out.mkdir(parents=True, exist_ok=True)
            with held(self.out):
                try:
                    return self._run()
                # What a single run advises does not continue a comparison.
                except (Interrupted, KeyboardInterrupt) as stop:
                    number = stop.signal_number if isinstance(stop, Interrupted) else signal.SIGINT
                    raise Interrupted(
                        f"{self.out}: interrupted; what is done is kept, and the same command goes on", number
                    ) from None

    def _run(self) -> Results:
        """Run the searches and the trainings, while the lock keeps other processes out."""
        self.searches.check()
        self.recipes |= self.searches.chosen
        waiting = self.searches.waiting
        # Checked with the budget known so far, so that a changed plan is refused before its speed is measured.
        jobs = self._jobs()
        for job in jobs.all():
            # The values of a recipe that waits for its search are not known yet, but that it has one is.
            job.check("search" if job.recipe.name in waiting else "")
        if self.shared is not None:
            self.budget.settle_threads(self.shared.threads)
        with self._workers(jobs) as workers:
            self.tasks, self.floors = self._tasks(jobs)
            self.searches.run(workers)
            self.recipes |= self.searches.chosen
            self._require_finetunable()
            for job in self._jobs().all():
                if job.recipe.name in waiting:
                    job.check()
            lost = self.searches.failures
            self.budget.fix([name for name in self.recipes if name not in lost], self._step_times)
            starts = {name: Path(facts.run) for name, facts in self.starts.items()}
            trainings = Trainings(
                self.plan, self.out, self.recipes, self._jobs, self.budget, lost, self.engine, self.progress, starts
            )
            return trainings.run(workers, self._publish)

    def _side_by_side(self) -> "SharedMachine | None":
        """The jobs' shares of the machine; None: one job at a time, with the threads that torch has."""
        if self.asked is None:
            return None
        from bakeoff.resources.threads import side_by_side

        threads = self.budget.facts.threads
        if threads is None and self.budget.begun:  # an older version's, whose runs had as many as torch
            threads = _trained_with(self.out)
        vocabulary = open_corpus(self.plan.corpus).tokenizer.size
        jobs = None if self.asked == "auto" else self.asked
        return side_by_side([*self.recipes.values()], vocabulary, self.plan.device, threads, jobs)

    def _workers(self, jobs: Jobs) -> AbstractContextManager[Workers | None]:
        """Processes that train side by side, started unless speed is to be measured first; None: one job at a time."""
        waiting = len(self.searches.waiting) + sum(not job.finished and job.failure is None for job in jobs.all())
        if self.shared is None or self.shared.jobs == 1 or waiting < 2:
            return nullcontext()
        workers = Workers(self.shared.jobs, self.shared.threads, MODULES)
        if self.budget.minutes is None:  # else they would disturb what is measured
            workers.start()
        return workers

    def _jobs(self) -> Jobs:
        """All jobs of the plan, with the recipes and budgets that are known so far."""
        dumped = {name: recipe.model_dump(mode="json") for name, recipe in self.recipes.items()}
        budgets = self.budget.by_recipe(self.recipes)
        weights = {name: facts.weights for name, facts in self.starts.items()}
        return Jobs(self.plan, self.out, dumped, self.corpus.fingerprint, budgets, weights)

    def _step_times(self, names: list[str]) -> Sequence[tuple[float, float]]:
        return self.engine.step_times([self.recipes[name] for name in names], self.plan.corpus, self.plan.device)

    def _require_finetunable(self) -> None:
        """Refuse recipes that cannot be fine-tuned as the plan says.

        Raises:
            UserError: a recipe cannot be fine-tuned on a task.
        """
        for name, recipe in self.recipes.items():
            for task in self.plan.tasks:
                try:
                    self.engine.check(recipe, task)
                except UserError as error:
                    raise UserError(f"task {quoted(task.name)}, recipe {quoted(name)}: {error}") from None

    def _tasks(self, jobs: Jobs) -> tuple[list[TaskFacts], list[Floor]]:
        """The facts and floors of every task, measured, or kept by an earlier call for the very same rows."""
        facts, found = [], []
        for task in self.plan.tasks:
            path = self.out / "floors" / f"{directory_name(task.name)}.json"
            settings = jobs.tasks[task.name]
            kept = KeptTask.check(read_json(path), str(path)) if path.is_file() else {}
            if not kept or any(differing(kept["settings"], settings)):
                self.say(f"reading {quoted(task.name)}; what is reached without a neural network")
                kept = {"settings": settings, **self._measure_floors(task)}
                path.parent.mkdir(parents=True, exist_ok=True)
                checksums.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            facts.append(TaskFacts.parse(kept["facts"], f"{path}: facts", strict=True))
            found += [Floor.parse(item, f"{path}: floors", strict=True) for item in kept["floors"]]
        return facts, found

    def _measure_floors(self, task: TaskPlan) -> dict[str, Any]:
        data = self.engine.task(task)
        metric = data.task.metric
        shown = task.data.described(metric)
        facts = TaskFacts(
            name=task.name,
            kind=task.data.kind,
            metric=metric,
            metric_title=shown.title,
            unit=shown.unit,
            lower_is_better=metric in task.data.lower_is_better,
            classes=len(data.task.classes),
            rows={split: len(getattr(data, split)) for split in ("train", "dev", "test")},
            files={split: str(path) if path else None for split, path in task.files.items()},
            notes=[*data.notes, *self.engine.hidden(self.plan.corpus, data)],
        )
        found = floors(task.name, data)
        return {"facts": facts.model_dump(mode="json"), "floors": [floor.model_dump(mode="json") for floor in found]}

    def _publish(self, jobs: Jobs, seeds: list[int], failures: dict[str, Failure]) -> Results:
        """Write the results and the report of the seeds that have finished.

        Raises:
            UserError: no recipe is left.
        """
        if len(failures) == len(self.recipes):
            messages = "; ".join(failure.message for failure in failures.values())
            raise UserError(f"{self.out}: every recipe diverged: {messages}")
        machine, versions = self.engine.environment(self.plan.device)
        known = ComparisonFacts(
            budget=self.budget.facts,
            corpus=self.corpus,
            tasks=self.tasks,
            floors=self.floors,
            searches=self.searches.results,
            starts=self.starts,
            machine=machine,
            versions=versions,
        )
        results = collect(jobs, seeds, list(failures.values()), known)
        checksums.forget(self.out, RESULTS)
        results.write_json(self.out / RESULTS[0])
        results.write_csv(self.out / RESULTS[1])
        self.report(results, self.out / RESULTS[2])
        checksums.record(self.out, [name for name in RESULTS if (self.out / name).is_file()])
        self.say(f"{len(seeds)} of {len(self.plan.seeds)} seeds done: {self.out / 'report.html'}")
        return results
