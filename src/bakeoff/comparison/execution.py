"""Runs a plan: every recipe, seed and task under one budget, going on where an earlier call was stopped."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.comparison.collect import collect
from bakeoff.comparison.engine import Bakeoff, Engine
from bakeoff.comparison.floors import floors
from bakeoff.comparison.jobs import Finetuning, Jobs, Pretraining
from bakeoff.comparison.plan import Plan, TaskPlan, directory_name
from bakeoff.comparison.results import BudgetFacts, Failure, Floor, Results, TaskFacts
from bakeoff.comparison.searches import Searches
from bakeoff.config import Record, differing
from bakeoff.durable import held, own_folder, remove
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.json_files import read_json
from bakeoff.optimization.budget import Budget

Progress = Callable[[str], None]

LOOK = 0.1
"""Share of its first training behind which a recipe's steps are corrected once."""
FEWEST_STEPS = 10
"""Steps that this takes at least."""
SLOW_STEPS = 3
"""The first ones, which take longer than those that follow."""
TOLERANCE = 0.05
"""What was measured before may be wrong by so much."""


def compare(
    plan: Plan | str | Path,
    out: str | Path,
    *,
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
        progress: told one line before each job.
        engine: what trains; left out: Bakeoff.
        report: what writes the report; left out: `write_report`.

    Raises:
        Interrupted: SIGINT or SIGTERM came; the same call goes on.
        UserError: a mistake in the plan or its files, found before anything is trained; or `out` holds runs with other
            settings, and the message names what differs; or every recipe diverged. One that diverges among others is
            left out, and the report says so.
    """
    plan = plan if isinstance(plan, Plan) else Plan.read(plan)
    with full_disk(Path(out), lambda: "what was trained is kept: with more space the same command goes on"):
        return _Comparison(plan, Path(out), progress, engine or Bakeoff(), report or _report).run()


def _report(results: Results, path: Path) -> None:
    from bakeoff.comparison.report import write_report

    write_report(results, path)


def _failure(job: Pretraining | Finetuning, message: str) -> Failure:
    return Failure(recipe=job.recipe.name, seed=job.seed, training=job.title, message=message)


class _Corrected(Exception):
    """A training begins anew with another number of steps."""


def _with_speed(budget: BudgetFacts, name: str, minutes: float, seconds: float, work: float) -> BudgetFacts:
    """The budget with the time of a recipe's step, and with the steps that this allows it."""
    return budget.model_copy(
        update={
            "steps": budget.steps | {name: max(1, int(minutes * 60 / seconds))},
            "seconds_per_step": budget.seconds_per_step | {name: seconds},
            "work_seconds_per_step": budget.work_seconds_per_step | {name: work},
        }
    )


class Kept(Record):
    """What a call keeps of a task for the next one."""

    settings: dict[str, Any]
    """What it was read with."""
    facts: dict[str, Any]
    """The task."""
    floors: list[dict[str, Any]]
    """The scores without any neural network."""


class _Comparison:
    """One call of `compare`."""

    def __init__(
        self, plan: Plan, out: Path, progress: Progress | None, engine: Engine, report: Callable[[Results, Path], None]
    ) -> None:
        self.plan, self.out, self.engine, self.report = plan, out, engine, report
        self.loud = progress is not None
        self.say: Progress = progress or (lambda line: None)

    def run(self) -> Results:
        """Everything in its order: what may fail for a mistake in the plan comes first."""
        plan = self.plan
        self.recipes = {item.name: self.engine.recipe(item.recipe, item.set, plan.device) for item in plan.recipes}
        self._require_finetunable()
        self.corpus = self.engine.corpus(plan.corpus, list(self.recipes.values()), plan.device)
        self._require_own_place()
        self.searches = Searches(plan, self.out, self.recipes, self.corpus.fingerprint, self.engine, self.say)
        self.searches.require_possible()
        self.out.mkdir(parents=True, exist_ok=True)
        with held(self.out):
            try:
                return self._run()
            except (Interrupted, KeyboardInterrupt) as stop:  # what a single run advises does not continue a comparison
                number = stop.signal_number if isinstance(stop, Interrupted) else signal.SIGINT
                raise Interrupted(
                    f"{self.out}: interrupted; what is done is kept, and the same command goes on", number
                ) from None

    def _run(self) -> Results:
        """The same, while no other process is at it."""
        plan = self.plan
        self.searches.check()
        self.recipes |= self.searches.chosen
        waiting = self.searches.waiting
        budget = self._known_budget()
        # Checked with the budget known so far, so that a changed plan is refused before its speed is measured.
        known = {name: f"steps={budget.steps[name]}" if name in budget.steps else plan.budget for name in self.recipes}
        jobs = Jobs(plan, self.out, self._dumped(), self.corpus.fingerprint, known)
        own_folder(self.out / "figures")
        for job in jobs.all():
            own_folder(job.directory, self.out)
            # The values of a recipe that waits for its search are not known yet, but that it has one is.
            job.check("search" if job.recipe.name in waiting else "")
        self.tasks, self.floors = self._tasks(jobs)
        self.searches.run()
        self.recipes |= self.searches.chosen
        self._require_finetunable()
        self.failures = self.searches.failures
        jobs = Jobs(plan, self.out, self._dumped(), self.corpus.fingerprint, known)
        for job in jobs.all():
            if job.recipe.name in waiting:
                job.check()
        self.budget = self._fixed_budget(budget)
        known |= {name: f"steps={steps}" for name, steps in self.budget.steps.items()}
        self.first_looks: dict[str, tuple[int, float]] = {}  # steps and work of a training when it is first looked at
        self.known = known  # a correction changes it, and with it the jobs that follow
        jobs = Jobs(plan, self.out, self._dumped(), self.corpus.fingerprint, known)
        self.failures |= {job.recipe.name: _failure(job, job.failure) for job in jobs.all() if job.failure}
        for done, seed in enumerate(plan.seeds, 1):
            worked = [self._job(job, jobs) for job in jobs.all() if job.seed == seed]
            if any(worked) or done == len(plan.seeds):
                results = self._publish(jobs, plan.seeds[:done])
        return results

    def _dumped(self) -> dict[str, dict[str, Any]]:
        """The complete recipes, as they are trained."""
        return {name: recipe.model_dump(mode="json") for name, recipe in self.recipes.items()}

    def _require_finetunable(self) -> None:
        """Refuse recipes that cannot be fine-tuned as the plan says.

        Raises:
            UserError: one of them cannot.
        """
        for name, recipe in self.recipes.items():
            for task in self.plan.tasks:
                try:
                    self.engine.check(recipe, task)
                except UserError as error:
                    raise UserError(f"task {task.name}, recipe {name}: {error}") from None

    def _job(self, job: Pretraining | Finetuning, jobs: Jobs) -> bool:
        """Run a job unless it has finished or its recipe is left out; whether anything was done."""
        if job.finished or job.recipe.name in self.failures:
            return False
        try:
            self._train(job)
        except _Corrected:
            remove(job.directory, self.out)
            return self._job(jobs.pretraining(job.recipe, job.seed), jobs)
        except Diverged as error:
            job.fail(str(error))
            self.failures[job.recipe.name] = _failure(job, str(error))
            self.say(f"seed {job.seed}: {job.title} diverged; {job.recipe.name} is left out from here on: {error}")
            return True
        if not job.finished:
            raise UserError(f"{job.directory}: did not finish; the same command goes on from here")
        return True

    def _train(self, job: Pretraining | Finetuning) -> None:
        job.begin()
        self.say(f"seed {job.seed}: {job.title}")
        common: dict[str, Any] = {"device": self.plan.device, "progress": self.loud}
        recipe = self.recipes[job.recipe.name]
        if isinstance(job, Pretraining):
            budget = Budget.parse_text(job.settings["budget"])
            if job.seed == self.plan.seeds[0] and job.recipe.name in self.budget.steps:
                common["watch"] = lambda step, work: self._correct(job.recipe.name, step, work)
            self.engine.pretrain(recipe, self.plan.corpus, job.directory, seed=job.seed, budget=budget, **common)
        else:
            # Fine-tuning is short and keeps no checkpoints: what an interruption left is made anew.
            remove(job.directory, self.out)
            run = job.directory.parent.parent / "pretrain"
            self.engine.finetune(
                run if job.initialisation == "pretrained" else recipe,
                job.task,
                job.directory,
                seed=job.random_seed,
                corpus=self.plan.corpus,
                **common,
            )

    def _require_own_place(self) -> None:
        """Refuse to write into a corpus or a run.

        Raises:
            UserError: the place is one, or a file.
        """
        try:
            files = {path.name for path in self.out.iterdir()} if self.out.exists() else set()
        except NotADirectoryError:
            raise UserError(f"{self.out}: a file; choose another --out") from None
        if files & {"recipe.yaml", "corpus.json"}:
            raise UserError(f"{self.out}: holds something else already; choose another --out")

    def _known_budget(self) -> BudgetFacts:
        """What an earlier call fixed.

        Raises:
            UserError: it was called with another budget.
        """
        path = self.out / "budget.json"
        if not path.is_file():
            return BudgetFacts(text=self.plan.budget)
        found = BudgetFacts.parse(read_json(path), str(path), strict=True)
        if found.text != self.plan.budget:
            raise UserError(
                f"{self.out}: made with budget {found.text}, the plan now says {self.plan.budget}; restore the plan or "
                "choose another --out"
            )
        return found

    def _fixed_budget(self, known: BudgetFacts) -> BudgetFacts:
        """Turn minutes into steps, once for all seeds; other budgets are the same for every seed by themselves."""
        minutes = Budget.parse_text(self.plan.budget).minutes
        missing = [name for name in self.recipes if name not in known.steps and name not in self.failures]
        if minutes is not None and missing:
            self.say(f"measuring the speed of {', '.join(missing)}")
            recipes = [self.recipes[name] for name in missing]
            measured = self.engine.step_times(recipes, self.plan.corpus, self.plan.device)
            for name, (seconds, work) in zip(missing, measured, strict=True):
                known = _with_speed(known, name, minutes, seconds, work)
        checksums.write(self.out / "budget.json", known.model_dump_json(indent=1) + "\n")
        return known

    def _correct(self, name: str, step: int, work: float) -> None:
        """Compare the first tenth of a recipe's first training with what was measured before.

        Raises:
            _Corrected: it took so much less or more that the training begins anew with another number of steps, which
                holds for all seeds. This happens at most once.
        """
        budget = self.budget
        minutes, steps = Budget.parse_text(budget.text).minutes, budget.steps[name]
        measured = budget.work_seconds_per_step.get(name)
        if minutes is None or measured is None or name in budget.corrected or step < SLOW_STEPS:
            return
        first, before = self.first_looks.setdefault(name, (step, work))
        if step - first < max(LOOK * steps, FEWEST_STEPS):
            return
        found = (work - before) / (step - first)
        seconds = budget.seconds_per_step[name] * found / measured
        if abs(minutes * 60 / seconds / steps - 1) > TOLERANCE:
            budget = _with_speed(budget, name, minutes, seconds, found)
        self.budget = budget.model_copy(update={"corrected": [*budget.corrected, name]})
        checksums.write(self.out / "budget.json", self.budget.model_dump_json(indent=1) + "\n")
        if self.budget.steps[name] != steps:
            self.known[name] = f"steps={self.budget.steps[name]}"
            self.say(
                f"{name}: {steps:,} steps would not take {minutes:g} minutes; anew with {self.budget.steps[name]:,}"
            )
            raise _Corrected

    def _tasks(self, jobs: Jobs) -> tuple[list[TaskFacts], list[Floor]]:
        """Read every task and measure its floors, or take what an earlier call kept for the very same rows."""
        facts, found = [], []
        for task in self.plan.tasks:
            path = self.out / "floors" / f"{directory_name(task.name)}.json"
            settings = jobs.tasks[task.name]
            kept = Kept.check(read_json(path), str(path)) if path.is_file() else {}
            if not kept or any(differing(kept["settings"], settings)):
                self.say(f"reading {task.name}; TF-IDF with logistic regression")
                kept = {"settings": settings, **self._measure_floors(task)}
                path.parent.mkdir(parents=True, exist_ok=True)
                checksums.write(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            facts.append(TaskFacts.parse(kept["facts"], f"{path}: facts", strict=True))
            found += [Floor.parse(item, f"{path}: floors", strict=True) for item in kept["floors"]]
        return facts, found

    def _measure_floors(self, task: TaskPlan) -> dict[str, Any]:
        data = self.engine.task(task)
        facts = TaskFacts(
            name=task.name,
            metric=task.metric,
            classes=len(data.classes),
            rows={part: len(getattr(data, part).labels) for part in ("train", "dev", "test")},
            files={part: str(path) if (path := getattr(task, part)) else None for part in ("train", "dev", "test")},
            notes=data.notes,
        )
        found = floors(task.name, data, task.metric)
        return {"facts": facts.model_dump(mode="json"), "floors": [floor.model_dump(mode="json") for floor in found]}

    def _publish(self, jobs: Jobs, seeds: list[int]) -> Results:
        """Write results and report of the seeds that are done.

        Raises:
            UserError: no recipe is left.
        """
        if len(self.failures) == len(self.recipes):
            messages = "; ".join(failure.message for failure in self.failures.values())
            raise UserError(f"{self.out}: every recipe diverged: {messages}")
        results = collect(
            jobs,
            seeds,
            failures=list(self.failures.values()),
            budget=self.budget,
            corpus=self.corpus,
            tasks=self.tasks,
            floors=self.floors,
            searches=self.searches.results,
            environment=self.engine.environment(self.plan.device),
        )
        written = ("results.json", "results.csv", "report.html")
        checksums.forget(self.out, written)
        results.write_json(self.out / written[0])
        results.write_csv(self.out / written[1])
        self.report(results, self.out / written[2])
        checksums.record(self.out, [name for name in written if (self.out / name).is_file()])
        self.say(f"{len(seeds)} of {len(self.plan.seeds)} seeds done: {self.out / 'report.html'}")
        return results
