"""The trainings of a comparison as jobs, which any process can do."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import override

from bakeoff import checksums
from bakeoff.comparison.planning.advice import in_a_plan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.running.correction import Corrected, FirstTenth, Pace
from bakeoff.display.progress import Shown
from bakeoff.errors import Diverged, UserError
from bakeoff.jobs.job import Job, Note, Outcome
from bakeoff.jobs.memory import job_memory
from bakeoff.jobs.pretraining import PretrainingJob
from bakeoff.json_files import json_lines
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.tasks.measures.measure import MeasureConfig
from bakeoff.tasks.measures.registry import MEASURES
from bakeoff.unfinished import unfinished_folder

LOOKED = {"looked": True}
"""The note that a training goes on as planned, after its speed was checked."""


class ComparedPretraining(PretrainingJob):
    """The pre-training of one recipe and seed."""

    pace: Pace | None = None
    """The planned speed, where it is to be compared; None: no comparison is needed."""
    checkpoints: dict[float, Path] = Field(default={})
    """The places of copies that are cooled down, by the share of the budget at which they end."""

    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Pre-train, until `summary.json` stands in the run's directory."""
        try:
            stopped = self._leave_copies(progress)
            watch = None if self.pace is None else FirstTenth(self.pace, lambda: note(LOOKED))
            self.train(progress, watch, goes_on=stopped)
        except Corrected as correction:
            return Outcome(work_seconds=correction.work_seconds)
        except Diverged as error:
            return Outcome(diverged=str(error))
        return Outcome()

    def _leave_copies(self, progress: Shown) -> bool:
        """Train up to each step from which a copy is cooled down, and copy the run there; returns whether it did."""
        from bakeoff.training.cooling import branch_off, cooling_from, waits_at

        missing = {share: path for share, path in sorted(self.checkpoints.items()) if not path.exists()}
        for number, (share, path) in enumerate(missing.items()):
            step = cooling_from(self.steps_of(share))
            run = self.model_copy(update={"until": step}).train(progress, goes_on=number > 0)
            if waits_at(run, step):  # else the training was past it already
                branch_off(run, path)
        return bool(missing)

    def steps_of(self, share: float) -> int:
        """The steps of a training that has a share of the budget."""
        from bakeoff.corpus.mixture import open_corpus
        from bakeoff.training.resolution import resolve_recipe

        budget = Budget.parse_text(self.budget)
        steps = resolve_recipe(self.parsed(), open_corpus(self.corpus), budget, self.device).training.budget.steps
        assert steps is not None
        return round(share * steps)


class CooledPretraining(ComparedPretraining):
    """The pre-training of one recipe and seed that ends at a share of the budget, with a learning rate that falls."""

    share: float
    """The share of the budget after which it ends."""

    @override
    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Go on from the copy that the whole pre-training has left, or train up to there again; and cool down."""
        from bakeoff.runs.run import Run
        from bakeoff.training.cooling import cool_down, cooling_from, waits_at
        from bakeoff.training.pretrain import pretrain

        steps = self.steps_of(self.share)
        try:
            begun = Run.open(self.out) if (self.out / "recipe.yaml").exists() else None
            cooling = begun is not None and begun.recipe.training.budget.steps == steps
            if begun is None or not (begun.finished or cooling):
                copied = begun is not None and waits_at(begun, cooling_from(steps))
                begun = self.model_copy(update={"until": cooling_from(steps)}).train(progress, goes_on=copied)
            if not begun.finished:
                cool_down(begun, steps)
                common: dict[str, Any] = {"device": self.device, "average_last": 0, "progress": progress}
                pretrain(None, self.corpus, self.out, resume=True, goes_on=not cooling, **common)
        except Diverged as error:
            return Outcome(diverged=str(error))
        return Outcome()


class ComparedFinetuning(Job):
    """The fine-tuning of one recipe and seed on a task."""

    recipe: dict[str, Any]
    """The complete recipe."""
    corpus: str
    """A folder with the tokenizer of a model with random weights: a corpus, or a run."""
    task: TaskPlan
    """The task."""
    source: Path | None = None
    """The pre-trained run that it starts from; None: random weights."""

    @override
    def memory(self, device: str) -> int:
        return job_memory(self.recipe, self.corpus, device)

    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Fine-tune, until `results.json` stands in the run's directory."""
        from bakeoff.tasks.finetune import finetune

        common: dict[str, Any] = {"seed": self.seed, "device": self.device, "progress": progress}
        if self.source is None:
            common["tokenizer"] = self.corpus  # a run has its own, the very same
        source = self.source or Recipe.parse(self.recipe, str(self.out))
        try:
            finetune(
                source,
                self.task.data,
                self.out,
                config=self.task.finetune,
                resume=unfinished_folder(self.out).exists() or self.out.exists(),
                **common,
            )
        except Diverged as error:
            return Outcome(diverged=str(error))
        except UserError as error:
            raise in_a_plan(error, "'s finetune") from None
        return Outcome()


class ComparedMeasurement(Job):
    """The measurement of one recipe's run, without fine-tuning."""

    recipe: dict[str, Any]
    """The complete recipe."""
    corpus: str
    """A folder with the run's tokenizer."""
    run: Path
    """The run."""
    measure: Annotated[MeasureConfig, MEASURES]
    """What it is measured on."""
    text: str | None = None
    """The corpus whose held-out text is read; None: the measure reads none."""

    @override
    def memory(self, device: str) -> int:
        return job_memory(self.recipe, self.corpus, device)

    def carry_out(self, progress: Shown, note: Callable[[Note], None]) -> Outcome:
        """Measure, until `results.json` stands in the directory."""
        from bakeoff.runs.run import Run

        began = time.perf_counter()
        measured = self.measure.measure(Run.open_finished(self.run), self.text, self.device)
        seconds = round(time.perf_counter() - began, 3)
        self.out.mkdir(parents=True)
        checksums.write(self.out / "rows.jsonl", json_lines(measured.lines))
        results = {"scores": measured.scores, "facts": measured.facts, "seconds": seconds}
        checksums.write(self.out / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        return Outcome()
