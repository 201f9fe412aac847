"""What a comparison will cost, before it begins: `compare --dry-run`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal

from bakeoff.comparison.label_curves import require_different_rows
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.equal_trainings import first_of_equals
from bakeoff.comparison.running.growth import grown, require_number
from bakeoff.comparison.running.opened import Opened
from bakeoff.comparison.running.planned import (
    AnyTraining,
    PlannedCooldown,
    PlannedFinetuning,
    PlannedMeasurement,
    PlannedPretraining,
)
from bakeoff.comparison.running.starts import IMPORTED
from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import quoted
from bakeoff.jobs.choice import Asked
from bakeoff.jobs.forecast import Forecast, Size, Work
from bakeoff.jobs.runner import Say
from bakeoff.json_files import read_json
from bakeoff.machine.limits import Limits
from bakeoff.optimization.budget import Budget
from bakeoff.resources.threads import using_threads
from bakeoff.runs.records import Summary
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.expected import expected_seconds
from bakeoff.tasks.measures.measure import MeasureConfig
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.cooling import SHARE
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.speed import FORECAST_SECONDS, step_times
from bakeoff.tuning.forecast import trial_work
from bakeoff.tuning.halving import evaluations
from bakeoff.tuning.results import SearchJournal, Trial
from bakeoff.unfinished import SEARCH


def forecast_comparison(
    plan: Plan | str | Path,
    out: str | Path,
    *,
    jobs: int | Literal["auto"] = "auto",
    ray: str | None = None,
    only: Sequence[str] = (),
    add_seeds: int | None = None,
    progress: Say | None = None,
) -> Forecast:
    """What `compare` will cost with the same arguments, by short measurements or by trainings that are done.

    Nothing is written; what is done already in `out` is not counted.

    Raises:
        UserError: a mistake in the plan that `compare` would refuse before its first training.
    """
    say, asked = progress or (lambda line: None), Asked(jobs, ray)
    require_number(add_seeds, only)
    plan, _ = grown(plan if isinstance(plan, Plan) else Plan.read(plan), Path(out), add_seeds)
    plan.require_recipes(only)
    with TemporaryDirectory() as aside:
        imported = None if (Path(out) / IMPORTED).is_dir() else Path(aside)
        opened = Opened(plan, Path(out), asked, Engine(), None, say, imported, only)
        with using_threads(None if opened.shared is None else opened.shared.threads):
            opened.searches.require_possible()
            opened.searches.require_unchanged()
            opened.recipes |= opened.searches.chosen
            waiting = opened.searches.waiting
            trainings = list(opened.planned().all())
            for each in trainings:
                each.require_unchanged("search" if each.recipe.name in waiting else "")
            _require_readable(opened, trainings)  # before any speed is measured, which takes seconds a recipe
            counted = _Counted(opened, trainings)
            works = [work for name in opened.recipes for work in counted.of(name)]
        return Forecast.of(works, asked, opened.shared, plan.device, counted.speed, Limits.of(Path(out)))


def _require_readable(opened: Opened, trainings: Sequence[AnyTraining]) -> None:
    """Read the files of every task that is on a curve or not fine-tuned on in whole.

    Raises:
        UserError: a file cannot be read as the task says, or a point of a curve has too many rows.
    """
    left = {each.task.name for each in trainings if isinstance(each, PlannedFinetuning) and not each.finished}
    tasks = [task for task in opened.plan.tasks if task.point is not None or task.name in left]
    require_different_rows(tasks, [len(opened.engine.task(task).train) for task in tasks])


class _Counted:
    """The work of each recipe.

    Args:
        opened: the comparison.
        trainings: all of its trainings.
    """

    def __init__(self, opened: Opened, trainings: list[AnyTraining]) -> None:
        self.opened, self.plan, self.speed = opened, opened.plan, list[str]()
        self.lost = {each.recipe.name for each in trainings if each.failure is not None and not each.outdated()}
        left = [i for i, each in enumerate(trainings) if each.recipe.name in self.lost and not each.finished]
        self.copies = [each for index in first_of_equals(trainings, left) if not (each := trainings[index]).finished]
        trainings = [each for each in trainings if each not in self.copies]
        self.cooldowns = [each for each in trainings if isinstance(each, PlannedCooldown)]
        self.pretrainings = [
            each for each in trainings if isinstance(each, PlannedPretraining) and each not in self.cooldowns
        ]
        self.finetunings = [each for each in trainings if isinstance(each, PlannedFinetuning)]
        self.measurements = [each for each in trainings if isinstance(each, PlannedMeasurement)]

    def of(self, name: str) -> Iterable[Work]:
        """The trials, pre-trainings and fine-tunings of a recipe; nothing of one that is left out."""
        if name in self.lost:
            return
        pretrainings = [each for each in self.pretrainings if each.recipe.name == name]
        finetunings = [each for each in self.finetunings if each.recipe.name == name]
        vocabulary = Tokenizer.load(self.opened.texts[name].tokenizer).size
        size = Size.of(self.opened.recipes[name], vocabulary, self.plan.device)
        steps, seconds = 0, 0.0
        if pretrainings or name in self.opened.searches.waiting:  # else it is compared as it is, or copied
            steps, seconds = self._pretraining(name, pretrainings)
        yield from self._trials(name, steps, seconds, size)
        if pretrainings:
            done = sum(each.finished for each in pretrainings)
            yield self._work("pre-training", name, len(pretrainings), done, seconds, size)
            for share in self.plan.checkpoints:
                those = [each for each in self.cooldowns if each.recipe.name == name and each.share == share]
                done = sum(each.finished for each in those)
                yield self._work("cool-down", name, len(those), done, SHARE * share * seconds, size)
        copied = [each for each in self.copies if each.recipe.name == name]
        kept = size if any(not isinstance(each, PlannedMeasurement) for each in copied) else size.without_files
        yield self._work("copied training", name, len(copied), 0, 0.0, kept)
        for task in self.plan.tasks:
            of_task = [each for each in finetunings if each.task.name == task.name]
            finished = [each for each in of_task if each.finished]
            if not of_task:
                continue  # they are copies
            seconds = self._finetuning(name, of_task, finished)
            yield self._work("fine-tuning", name, len(of_task), len(finished), seconds, size)
        for measure in self.plan.measures:
            of_measure = [each for each in self.measurements if (each.recipe.name, each.measure) == (name, measure)]
            if of_measure:  # else it cannot be measured
                ended = [read_json(each.directory / each.marker)["seconds"] for each in of_measure if each.finished]
                seconds = fmean(ended) if ended else self._measuring(name, measure)
                yield self._work("measurement", name, len(of_measure), len(ended), seconds, size.without_files)

    @staticmethod
    def _work(what: str, name: str, jobs: int, done: int, seconds: float, size: Size) -> Work:
        bytes_ = {"kept": size.weights, "running": size.running, "memory": size.memory}
        return Work(what=what, of=name, jobs=jobs - done, done=done, seconds=seconds, **bytes_)

    def _pretraining(self, name: str, trainings: Sequence[PlannedPretraining]) -> tuple[int, float]:
        """Steps and seconds of a pre-training."""
        recipe, budget = self.opened.recipes[name], Budget.parse_text(self.opened.budget.by_recipe([name])[name])
        ended = [Summary.check(read_json(path), str(path)) for path in _markers(trainings)]
        if ended:
            steps, seconds = ended[0]["steps"], fmean(each["seconds"] for each in ended)
            self.speed.append(f"{name} {1000 * seconds / max(1, steps):.3g} ms a step in its trainings here")
            return steps, seconds
        minutes, corpus = self.opened.budget.minutes(name), open_corpus(self.opened.texts[name].path)
        if minutes is not None:
            facts = self.opened.budget.facts
            self.speed.append(f"{name} by its budget")
            return facts.steps.get(name, 0), 60 * minutes
        steps = resolve_recipe(recipe, corpus, budget, self.plan.device).training.budget.steps or 1
        self.opened.say(f"measuring the speed of {name}")
        (time,) = step_times([recipe], corpus, self.plan.device, FORECAST_SECONDS)
        self.speed.append(f"{name} {1000 * time.seconds:.3g} ms a step, measured now")
        return steps, steps * time.seconds

    def _trials(self, name: str, steps: int, seconds: float, size: Size) -> Iterable[Work]:
        """The trials of a recipe's search, if it has one."""
        search = self.plan.search
        if search is None or name not in self.opened.searches.planned:
            return
        path = self.opened.searches.planned[name].directory / SEARCH
        if path.is_file():
            trials = SearchJournal.read(path).trials
        else:
            each = max(1, round(steps * search.share)) if steps else 100  # of minutes only the shares are known
            validations = self.opened.recipes[name].training.validations
            marks = evaluations(validations, [each] * search.trials)
            trials = [
                Trial(number=number, values={}, steps=each, evaluations=marks[number])
                for number in range(search.trials)
            ]
        yield trial_work(name, trials, search.seeds, seconds * search.share, size)

    def _finetuning(
        self, name: str, trainings: Sequence[PlannedFinetuning], finished: Sequence[PlannedFinetuning]
    ) -> float:
        """Seconds of a fine-tuning on a task."""
        if finished:
            return fmean(FinetunedRun.open(each.directory).results.seconds for each in finished)
        task, recipe = trainings[0].task, self.opened.recipes[name]
        folder = self.opened.texts[name].tokenizer
        self.opened.say(f"measuring the speed of {trainings[0].title}")
        return expected_seconds(recipe, folder, task.data, task.finetune, self.plan.device)

    def _measuring(self, name: str, measure: MeasureConfig) -> float:
        """Seconds of a measurement of a recipe's run."""
        self.opened.say(f"measuring the speed of {quoted(name)} on {quoted(measure.title)}")
        tokenizer = Tokenizer.load(self.opened.texts[name].tokenizer)
        text = str(self.opened.held_out[name]) if measure.reads_text else None
        return measure.expected_seconds(self.opened.recipes[name], tokenizer, text, self.plan.device)


def _markers(trainings: Sequence[PlannedPretraining]) -> list[Path]:
    """The files with the figures of the trainings that are done."""
    return [each.directory / each.marker for each in trainings if each.finished]
