"""Running a plan: every recipe, seed and task under one budget, resumed where an earlier call was stopped."""

import json
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Literal

from bakeoff import checksums
from bakeoff.comparison.collect import ComparisonFacts, collect
from bakeoff.comparison.label_curves import require_different_rows
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.results import LATEX, MARKDOWN, RESULTS, Failure, Results
from bakeoff.comparison.results_csv import write_csv
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.growth import Growth, grown, require_number
from bakeoff.comparison.running.latency import Latencies
from bakeoff.comparison.running.layers import layers_of_recipes, similarities_of_recipes
from bakeoff.comparison.running.opened import Opened
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.comparison.running.tasks import read_tasks
from bakeoff.comparison.running.trainings import Trainings
from bakeoff.durable import held
from bakeoff.errors import Interrupted, UserError, path_of
from bakeoff.full_disk import full_disk
from bakeoff.jobs.choice import Asked
from bakeoff.jobs.job import Workers
from bakeoff.jobs.processes import Processes
from bakeoff.jobs.runner import Runner, Say
from bakeoff.machine.launch import require_one_process
from bakeoff.resources.threads import using_threads


def compare(
    plan: Plan | str | Path,
    out: str | Path,
    *,
    jobs: int | Literal["auto"] = "auto",
    ray: str | None = None,
    only: Sequence[str] = (),
    add_seeds: int | None = None,
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
        out: directory of all runs and of report.html, report.md, tables.tex, results.csv and results.json.
        jobs: number of trainings that run at the same time, each in its own process; the results stay the same. auto:
            as many as there are cores, with one thread each, for small models; one at a time for large ones; one for
            each GPU.
        ray: Ray cluster that trains in place of this machine, on all its machines, which share the disk of `out`:
            local, auto or HOST:PORT (docs/scale.md); `jobs` is then the most at the same time. None: this machine
            trains.
        only: recipes of the plan, by their labels, that are trained now; a grid's name stands for all its cells. The
            report has these and those that are done. Left out: all of the plan.
        add_seeds: number of seeds by which a finished comparison grows; what has finished is not run again. After an
            interruption the same command goes on with these seeds and adds no others.
        progress: a function that gets one line before each training.
        engine: the object that trains, one job at a time and in this process; left out: Bakeoff itself.
        workers: workers that train side by side, instead of `jobs`, see `bakeoff.jobs`; they are left running.
        report: the function that writes the report; left out: report.html, report.md and tables.tex.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the plan or its files, before anything is trained; or `out` holds runs with other
            settings, and the message names what differs; or every recipe diverged. One that diverges among others is
            left out, and the report says so.
    """
    if ray is None:  # else Ray has started the others
        require_one_process(out)
    asked = Asked(jobs, ray)
    asked.require_cluster()
    require_number(add_seeds, only)
    out = path_of(out, "out")
    plan, growth = grown(plan if isinstance(plan, Plan) else Plan.read(plan), out, add_seeds)
    plan.require_recipes(only)
    those = asked if engine is None and workers is None else None
    with full_disk(out, lambda: "what was trained is kept: with more space the same command goes on"):
        return _Comparison(
            plan, growth, out, those, only, progress, engine or Engine(), workers, report or _report
        ).run()


def _report(results: Results, path: Path) -> None:
    from bakeoff.comparison.reporting.latex import write_latex
    from bakeoff.comparison.reporting.markdown_report import write_markdown
    from bakeoff.comparison.reporting.report import write_report

    write_report(results, path)
    write_markdown(results, path.with_name(MARKDOWN))
    write_latex(results, path.with_name(LATEX))


class _Comparison(Opened):
    """One call of `compare`, with all that it needs from the check of the plan to the report."""

    def __init__(
        self,
        plan: Plan,
        growth: Growth,
        out: Path,
        asked: Asked | None,
        only: Sequence[str],
        progress: Say | None,
        engine: Engine,
        workers: Workers | None,
        report: Callable[[Results, Path], None],
    ) -> None:
        self.growth, self.progress, self.report = growth, progress, report
        super().__init__(plan, out, asked, engine, workers, progress or (lambda line: None), only=only)

    def run(self) -> Results:
        """Run the comparison; the checks that find mistakes in the plan come before any training."""
        with using_threads(None if self.shared is None else self.shared.threads):
            self.searches.require_possible()
            made = not self.out.exists()
            self.out.mkdir(parents=True, exist_ok=True)
            with held(self.out):
                try:
                    return self._run()
                except UserError:
                    if made:
                        with suppress(OSError):  # it holds something
                            self.out.rmdir()
                    raise
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
        planned = self.planned()
        for each in planned.all():
            # The values of a recipe that waits for its search are not known yet, but that it has one is.
            each.check("search" if each.recipe.name in waiting else "")
        self.growth.write(self.out)
        with self._workers(planned) as workers:  # first: a cluster that does not answer leaves nothing
            tasks = {task.name: (task, planned.tasks[task.name]) for task in self.plan.tasks}
            self.environment = self.engine.environment(self.plan.device)
            circumstances = self.plan.latency.circumstances(*self.environment)
            self.tasks = read_tasks(tasks, self.plan.corpus, self.out, circumstances, self.engine, self.say)
            require_different_rows(self.plan.tasks, [facts.rows["train"] for facts in self.tasks.facts])
            if self.shared is not None:  # after all that may be refused, so that a mended plan may have another budget
                self.budget.settle_threads(self.shared.threads)
            self.searches.run(workers)
            self.recipes |= self.searches.chosen
            self.require_finetunable()
            for each in self.planned().all():
                if each.recipe.name in waiting:
                    each.check()
            lost = self.searches.failures
            settings = self._beside_steps() if self._in_minutes else {}
            self.budget.fix([name for name in self.recipes if name not in lost], self.step_times, settings)
            runner = Runner(workers, self.engine.carry_out, self.progress, "training")
            return Trainings(self.planned, self.texts, self.held_out, self.budget, lost, runner, self._publish).run()

    @property
    def _in_minutes(self) -> bool:
        return any(self.budget.minutes(name) is not None for name in self.recipes)

    def _beside_steps(self) -> dict[str, str]:
        """All that decides the pre-trainings of recipes beside their steps, by label."""
        planned, settings = self.planned(), {}
        for item in self.plan.recipes:
            of_seeds = [planned.pretraining(item, seed).settings for seed in self.plan.seeds]
            budget = {"budget": self.budget.facts.of(item.name)}
            settings[item.name] = json.dumps([{**each, **budget} for each in of_seeds], sort_keys=True)
        return settings

    def _workers(self, planned: PlannedTrainings) -> AbstractContextManager[Workers | None]:
        """Those who train side by side, started unless speed is to be measured first; None: one training at a time."""
        if self.workers is not None:
            return nullcontext(self.workers)
        waiting = len(self.searches.waiting) + sum(not each.finished and each.failure is None for each in planned.all())
        if self.asked is None or waiting < (2 if self.asked.ray is None else 1):
            return nullcontext()
        minutes = self._in_minutes
        workers = self.asked.workers(
            self.shared, self.out, self.read(), self.plan.device, minutes=minutes, say=self.say
        )
        if isinstance(workers, Processes) and not minutes:  # else they would disturb what is measured
            workers.start()
        return workers

    def _publish(self, planned: PlannedTrainings, seeds: list[int], failures: dict[str, Failure]) -> Results:
        """Write the results and the report of the seeds that have finished.

        Raises:
            UserError: no recipe is left.
        """
        if len(failures) == len(self.recipes):
            messages = "; ".join(failure.message for failure in failures.values())
            raise UserError(f"{self.out}: every recipe diverged: {messages}")
        machine, versions = self.environment
        latencies, layers, similarities = [], [], []
        if seeds == self.plan.seeds:  # else trainings would disturb what is measured
            circumstances = self.plan.latency.circumstances(machine, versions)
            measured = Latencies(self.plan.latency, self.out, self.engine, self.say)
            latencies = measured.of(planned, failures, circumstances)
            corpora = {name: text.path for name, text in self.texts.items()}
            layers = layers_of_recipes(planned, corpora, failures, self.engine, self.say)
            similarities = similarities_of_recipes(planned, failures, self.engine, self.say)
        known = ComparisonFacts(
            budget=self.budget.facts,
            corpus=self.corpus,
            own_corpora=self.own_corpora,
            tasks=self.tasks.facts,
            baselines=self.tasks.baselines,
            clusters=self.tasks.clusters,
            rows=self.tasks.rows,
            unmeasured=self.unmeasured,
            searches=self.searches.results,
            starts=self.starts,
            latencies=latencies,
            layers=layers,
            similarities=similarities,
            later=self.later,
            looks=self.growth.looks,
            machine=machine,
            versions=versions,
        )
        results = collect(planned, seeds, list(failures.values()), known)
        checksums.forget(self.out, RESULTS)
        results.write_json(self.out / RESULTS[0])
        write_csv(results, self.out / RESULTS[1])
        self.report(results, self.out / RESULTS[2])
        checksums.record(self.out, [name for name in RESULTS if (self.out / name).is_file()])
        self.say(f"{len(seeds)} of {len(self.plan.seeds)} seeds done: {self.out / 'report.html'}")
        return results
