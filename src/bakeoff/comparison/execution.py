"""Running a plan: every recipe, seed and task under one budget, resumed where an earlier call was stopped."""

import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

from bakeoff import checksums
from bakeoff.comparison.collect import ComparisonFacts, collect
from bakeoff.comparison.plan import Plan
from bakeoff.comparison.results import FIGURES, RESULTS, Failure, Results
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.comparison.running.searches import Searches
from bakeoff.comparison.running.spendable import BUDGET, Spendable
from bakeoff.comparison.running.starts import IMPORTED, Starts
from bakeoff.comparison.running.tasks import read_tasks
from bakeoff.comparison.running.trainings import Trainings
from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import quoted
from bakeoff.durable import held, without_links
from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.jobs.choice import Asked, corpus_folders
from bakeoff.jobs.job import Workers
from bakeoff.jobs.processes import Processes
from bakeoff.jobs.runner import Runner, Say
from bakeoff.json_files import read_json
from bakeoff.machine.launch import require_one_process
from bakeoff.reading.hub import on_hub
from bakeoff.resources.threads import SharedMachine, using_threads
from bakeoff.runs.records import PretrainingEnvironment

FOLDERS = ("baselines", IMPORTED, "runs", "searches")
"""The folders of a comparison, which a start that was killed may have left before there was a budget."""


def compare(
    plan: Plan | str | Path,
    out: str | Path,
    *,
    jobs: int | Literal["auto"] = "auto",
    ray: str | None = None,
    progress: Say | None = None,
    engine: Engine | None = None,
    workers: Workers | None = None,
    report: Callable[[Results, Path], None] | None = None,
) -> Results:
    """Pre-train and fine-tune everything that a plan asks for, and report.

    Seeds are the outer loop, so that a machine that slows down hits all recipes alike; the report is written anew after
    each seed. What has finished is not run again, and an interrupted pre-training goes on where it was.

    Args:
        plan: the plan, or its file.
        out: directory of all runs and of report.html, results.csv and results.json.
        jobs: number of trainings that run at the same time, each in its own process; the results stay the same. auto:
            as many as there are cores, with one thread each, for small models; one at a time for large ones; one for
            each GPU.
        ray: Ray cluster that trains in place of this machine, on all its machines, which share the disk of `out`:
            local, auto or HOST:PORT (docs/scale.md); `jobs` is then the most at the same time. None: this machine
            trains.
        progress: a function that gets one line before each training.
        engine: the object that trains, one job at a time and in this process; left out: Bakeoff itself.
        workers: workers that train side by side, instead of `jobs`, see `bakeoff.jobs`; they are left running.
        report: the function that writes the report; left out: `write_report`.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the plan or its files, before anything is trained; or `out` holds runs with other
            settings, and the message names what differs; or every recipe diverged. One that diverges among others is
            left out, and the report says so.
    """
    if ray is None:  # else Ray has started the others
        require_one_process(out)
    if jobs != "auto" and jobs < 1:
        raise UserError(f"--jobs {jobs}: give at least 1")
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    asked = Asked(jobs, ray) if engine is None and workers is None else None
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return _Comparison(plan, Path(out), asked, progress, engine or Engine(), workers, report or _report).run()


def _report(results: Results, path: Path) -> None:
    from bakeoff.comparison.reporting.report import write_report

    write_report(results, path)


def _trained_with(out: Path) -> int | None:
    """The number of threads of a comparison's runs, which is the same for all; None: there is no run yet."""
    for path in sorted((out / "runs").glob("*/seed-*/pretrain/environment.json")):
        return int(PretrainingEnvironment.check(read_json(path), str(path))["threads"])
    return None


def _require_unused_place(out: Path) -> None:
    """Refuse to write into a corpus or a run, over results that no comparison has written, and through a link.

    Raises:
        UserError: the directory is a corpus, a run or a file, or holds such results or a link.
        Damaged: the comparison's budget is lost.
    """
    try:
        names = {path.name for path in out.iterdir()} if out.exists() else set()
    except NotADirectoryError:
        raise UserError(f"{out}: a file; choose another --out") from None
    if names & {"recipe.yaml", "corpus.json"}:
        raise UserError(f"{out}: holds something else already; choose another --out")
    if BUDGET not in names:  # no comparison has begun here
        checksums.require_present(out / BUDGET)
        taken = [name for name in FOLDERS if name in names and not (out / name).is_dir()]
        for name in sorted({*taken, *names & {*RESULTS, FIGURES}}):
            if (out / name).is_symlink():
                continue  # and is named as a link below
            raise UserError(f"{out / name}: is there already, and not from a comparison; choose another --out")
    without_links(out)


class _Comparison:
    """One call of `compare`, with all that it needs from the check of the plan to the report."""

    def __init__(
        self,
        plan: Plan,
        out: Path,
        asked: Asked | None,
        progress: Say | None,
        engine: Engine,
        workers: Workers | None,
        report: Callable[[Results, Path], None],
    ) -> None:
        self.plan, self.out, self.asked, self.engine, self.report = plan, out, asked, engine, report
        self.workers = workers
        self.progress = progress
        self.say: Say = progress or (lambda line: None)

    def run(self) -> Results:
        """Run the comparison; the checks that find mistakes in the plan come before any training."""
        plan = self.plan
        _require_unused_place(self.out)
        starts = Starts(plan, self.out, self.engine, self.say)
        self.recipes = {item.name: starts.recipe(item) for item in plan.recipes}
        self._require_finetunable()
        self.corpus = self.engine.corpus(plan.corpus, list(self.recipes.values()), plan.device)
        self.starts = starts.facts(self.recipes)
        self.budget = Spendable(plan.budget, self.out, self.say)
        self.shared = self._side_by_side()
        self.searches = Searches(
            plan, self.out, self.recipes, self.corpus.fingerprint, self.engine, self.say, self.starts
        )
        with using_threads(None if self.shared is None else self.shared.threads):
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
        planned = self._planned()
        for each in planned.all():
            # The values of a recipe that waits for its search are not known yet, but that it has one is.
            each.check("search" if each.recipe.name in waiting else "")
        if self.shared is not None:
            self.budget.settle_threads(self.shared.threads)
        with self._workers(planned) as workers:
            tasks = {task.name: (task, planned.tasks[task.name]) for task in self.plan.tasks}
            self.tasks, self.baselines = read_tasks(tasks, self.plan.corpus, self.out, self.engine, self.say)
            self.searches.run(workers)
            self.recipes |= self.searches.chosen
            self._require_finetunable()
            for each in self._planned().all():
                if each.recipe.name in waiting:
                    each.check()
            lost = self.searches.failures
            self.budget.fix([name for name in self.recipes if name not in lost], self._step_times)
            runner = Runner(workers, self.engine.carry_out, self.progress, "training")
            return Trainings(self._planned, self.budget, lost, runner, self._publish).run()

    def _side_by_side(self) -> SharedMachine | None:
        """The trainings' shares of the machine; None: one at a time, with the threads that torch has."""
        if self.workers is not None:
            return SharedMachine(self.workers.threads, [self.plan.device] * self.workers.slots)
        if self.asked is None:
            return None
        threads = self.budget.facts.threads
        if threads is None and self.budget.begun:  # an older version's, whose runs had as many as torch
            threads = _trained_with(self.out)
        vocabulary = open_corpus(self.plan.corpus).tokenizer.size
        return self.asked.shares([*self.recipes.values()], vocabulary, self.plan.device, threads)

    def _workers(self, planned: PlannedTrainings) -> AbstractContextManager[Workers | None]:
        """Those who train side by side, started unless speed is to be measured first; None: one training at a time."""
        if self.workers is not None:
            return nullcontext(self.workers)
        waiting = len(self.searches.waiting) + sum(not each.finished and each.failure is None for each in planned.all())
        if self.asked is None or waiting < (2 if self.asked.ray is None else 1):
            return nullcontext()
        minutes = self.budget.minutes is not None
        workers = self.asked.workers(
            self.shared, self.out, self._read(), self.plan.device, minutes=minutes, say=self.say
        )
        if isinstance(workers, Processes) and not minutes:  # else they would disturb what is measured
            workers.start()
        return workers

    def _read(self) -> list[Path]:
        """The files and folders that trainings read."""
        files = [file for task in self.plan.tasks for file in task.files.values() if file and not on_hub(file)]
        return [*corpus_folders(str(self.plan.corpus)), *files, *(Path(start.run) for start in self.starts.values())]

    def _planned(self) -> PlannedTrainings:
        """All trainings of the plan, with the recipes and budgets that are known so far."""
        dumped = {name: recipe.model_dump(mode="json") for name, recipe in self.recipes.items()}
        budgets = self.budget.by_recipe(self.recipes)
        return PlannedTrainings(self.plan, self.out, dumped, self.corpus.fingerprint, budgets, self.starts)

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

    def _publish(self, planned: PlannedTrainings, seeds: list[int], failures: dict[str, Failure]) -> Results:
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
            baselines=self.baselines,
            searches=self.searches.results,
            starts=self.starts,
            machine=machine,
            versions=versions,
        )
        results = collect(planned, seeds, list(failures.values()), known)
        checksums.forget(self.out, RESULTS)
        results.write_json(self.out / RESULTS[0])
        results.write_csv(self.out / RESULTS[1])
        self.report(results, self.out / RESULTS[2])
        checksums.record(self.out, [name for name in RESULTS if (self.out / name).is_file()])
        self.say(f"{len(seeds)} of {len(self.plan.seeds)} seeds done: {self.out / 'report.html'}")
        return results
