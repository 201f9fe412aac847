"""A comparison whose plan is checked: all that is known of it before anything is written or trained."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.comparison.facts import CorpusFacts
from bakeoff.comparison.planning.own_settings import AS_IT_IS
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.results import FIGURES, RESULTS
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.planned import PlannedTrainings
from bakeoff.comparison.running.refusals import (
    of_each,
    of_recipe,
    require_different,
    require_different_recipes,
    require_used,
)
from bakeoff.comparison.running.searches import Searches
from bakeoff.comparison.running.spendable import BUDGET, Spendable
from bakeoff.comparison.running.starts import IMPORTED, Starts
from bakeoff.comparison.running.texts import PREPARED, Texts
from bakeoff.corpus.mixture import open_corpus
from bakeoff.display.wording import listed, quoted
from bakeoff.durable import without_links
from bakeoff.errors import UserError
from bakeoff.jobs.choice import Asked, corpus_folders
from bakeoff.jobs.job import Workers
from bakeoff.jobs.runner import Say
from bakeoff.json_files import read_json
from bakeoff.optimization.early_stopping import LossUnit
from bakeoff.reading.hub import on_hub
from bakeoff.resources.device import require_known_device
from bakeoff.resources.threads import SharedMachine
from bakeoff.runs.records import PretrainingEnvironment
from bakeoff.tasks.rows.inputs import check_length
from bakeoff.tokenizer.identity import identity_of
from bakeoff.tokenizer.tokenizer import Tokenizer

FOLDERS = ("baselines", IMPORTED, PREPARED, "runs", "searches")
"""The folders of a comparison, which a start that was killed may have left before there was a budget."""


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


def _until(recipe: Any, loss: float, unit: LossUnit) -> Any:
    """A recipe whose training ends at a held-out loss, or as it says itself."""
    stopping = recipe.training.early_stopping
    own = {} if stopping is None else stopping.model_dump(mode="json")
    return recipe.changed({"training.early_stopping": {**own, "target": loss, "target_unit": unit}})


class Opened:
    """A comparison whose plan is checked.

    Args:
        plan: the plan.
        out: the comparison's directory.
        asked: who trains; None: `workers`, or the engine itself.
        engine: the engine.
        workers: the caller's workers.
        say: a function that shows one line of progress.
        imported: the directory for models that have to be imported and texts that have to be prepared; None: `out`.
        only: labels of recipes, or names of grids: what is neither of these nor done is left out; empty: nothing is.

    Attributes:
        later: the labels of recipes that are left out.
        recipes: the recipes, by label, with the values that finished searches have chosen.
        texts: the corpus of each recipe and its tokenizer, by label.
        corpora: the facts of all corpora, by directory.
        corpus: the facts of the plan's corpus.
        starts: the runs that recipes start from, by label and seed.
        teachers: the digests of the runs that recipes learn from, by label and name.
        held_out: the corpus whose held-out text each recipe is measured on, by label; empty: none is.
        unmeasured: the reasons why recipes are left out of measures, by the recipe's label and the measure's title.
        budget: the budget of each recipe.
        shared: the trainings' shares of the machine; None: one at a time, with the threads that torch has.
        searches: the searches.

    Raises:
        UserError: a mistake in the plan, or a directory that is taken.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path,
        asked: Asked | None,
        engine: Engine,
        workers: Workers | None,
        say: Say,
        imported: Path | None = None,
        only: Sequence[str] = (),
    ) -> None:
        self.plan, self.out, self.asked, self.engine, self.workers, self.say = plan, out, asked, engine, workers, say
        _require_unused_place(out)
        require_known_device(plan.device, "device:")  # here, where the message says that it is the plan's
        starts = Starts(plan, imported or out, engine, say)
        items = {item.name: item for item in plan.recipes}
        self.recipes = of_each(items, lambda name: starts.recipe(items[name]))
        for item in plan.recipes:
            if plan.until is not None and not item.as_it_is:
                with of_recipe(item.name):
                    self.recipes[item.name] = _until(self.recipes[item.name], *plan.until)
        require_different(plan.grids, {name: (recipe, items[name]) for name, recipe in self.recipes.items()})
        self.require_finetunable()
        texts = Texts(plan, out, imported or out, say)
        self.texts = of_each(items, lambda name: texts.of(items[name], starts.run(items[name])))
        self.corpora = self._corpora()
        self.corpus = self.corpora[plan.corpus]
        if plan.checkpoints:
            trained = [item.name for item in plan.recipes if not item.as_it_is]
            of_each(trained, self._require_coolable, "checkpoints, ")
        self.starts = starts.facts(self.recipes, self.texts)
        self.teachers = of_each(self.recipes, lambda name: self.engine.teachers(self.recipes[name]))
        self.budget = self._budget()
        for measure in plan.measures:
            measure.check()
        self.unmeasured = self._unmeasured()
        read = self.texts if any(measure.reads_text for measure in plan.measures) else {}
        self.held_out = of_each(read, lambda name: texts.held_out(items[name], self.texts[name]))
        self._fingerprints = {path: open_corpus(path).fingerprint for path in {*self.held_out.values()}}
        self.shared = self._side_by_side()  # by which all trainings of the plan have the same threads
        self.searches = self._searches()
        require_different_recipes(self.planned())
        self.later: list[str] = []
        if only:
            self._leave_for_later(only)

    def _leave_for_later(self, only: Sequence[str]) -> None:
        """Leave out the recipes that are neither asked for nor done."""
        unfinished = {each.recipe.name for each in self.planned().all() if not each.finished}
        items = self.plan.recipes
        self.later = [item.name for item in items if item.name in unfinished and not {*only} & {*item.names}]
        kept = [item for item in items if item.name not in self.later]
        self.plan = self.plan.model_copy(update={"recipes": kept})
        of_recipes: list[dict[str, Any]] = [self.recipes, self.texts, self.starts, self.held_out]
        for known, name in product(of_recipes, self.later):
            known.pop(name, None)
        paths = {self.plan.corpus, *(text.path for text in self.texts.values())}
        self.corpora = {path: facts for path, facts in self.corpora.items() if path in paths}
        self.budget, self.unmeasured, self.searches = self._budget(), self._unmeasured(), self._searches()

    def _budget(self) -> Spendable:
        """The budget of each recipe.

        Raises:
            UserError: an earlier call had another budget.
        """
        budgets = {item.name: self.plan.budget_of(item) for item in self.plan.recipes}
        return Spendable(self.plan.budget or AS_IT_IS, budgets, self.out, self.say)

    def _searches(self) -> Searches:
        """The searches of the recipes.

        Raises:
            UserError: a recipe cannot be searched.
        """
        corpora = {name: (text.path, self.corpora[text.path].fingerprint) for name, text in self.texts.items()}
        return Searches(self.plan, self.out, self.recipes, corpora, self.engine, self.say, self.starts, self.teachers)

    def _corpora(self) -> dict[Path, CorpusFacts]:
        """The facts of the plan's corpus and of those of single recipes, by directory.

        Raises:
            UserError: a recipe cannot be trained on its corpus.
        """
        trained: dict[Path, dict[str, Any]] = {self.plan.corpus: {}}
        for item in self.plan.recipes:
            if not item.as_it_is:
                trained.setdefault(self.texts[item.name].path, {})[item.name] = self.recipes[item.name]
        return {path: self.engine.corpus(path, recipes, self.plan.device) for path, recipes in trained.items()}

    @property
    def own_corpora(self) -> dict[str, CorpusFacts]:
        """The facts of the corpora of recipes that have another one than the plan, by label."""
        own = {item.name: self.texts[item.name].path for item in self.plan.recipes if not item.as_it_is}
        return {name: self.corpora[path] for name, path in own.items() if path != self.plan.corpus}

    def require_finetunable(self) -> None:
        """Refuse recipes that cannot be fine-tuned and measured as the plan says.

        Raises:
            UserError: a recipe cannot be fine-tuned on a task, or its model does not reach the length of `latency`.
        """
        if (length := self.plan.latency.length) is not None:
            of_each(self.recipes, lambda name: check_length(self.recipes[name].model, length), "latency, ")
        for task in self.plan.tasks:
            tasks = {item.name: self.plan.task_of(item, task) for item in self.plan.recipes}
            of_each(self.recipes, partial(self._require_finetunable, tasks), f"task {quoted(task.name)}, ")
        idle = {
            (item.name, task.name): self.engine.idle_settings(self.recipes[item.name], self.plan.task_of(item, task))
            for item, task in product(self.plan.recipes, self.plan.tasks)
        }
        for task in self.plan.tasks:
            of_task = [idle[item.name, task.name] for item in self.plan.recipes]
            require_used(f"task {quoted(task.name)}: ", task.finetune.model_fields_set, of_task)
        for item in self.plan.recipes:
            of_item = [idle[item.name, task.name] for task in self.plan.tasks]
            require_used(f"recipe {quoted(item.name)}: ", item.finetune, of_item)

    def _require_finetunable(self, tasks: Mapping[str, TaskPlan], name: str) -> None:
        self.engine.check(self.recipes[name], tasks[name])

    def _require_coolable(self, name: str) -> None:
        budget = self.plan.budget_of(next(item for item in self.plan.recipes if item.name == name))
        where = self.texts[name].path
        self.engine.require_coolable(self.recipes[name], where, budget, self.plan.checkpoints, self.plan.device)

    def planned(self) -> PlannedTrainings:
        """All trainings of the plan, with the recipes and budgets that are known so far."""
        dumped = {name: recipe.model_dump(mode="json") for name, recipe in self.recipes.items()}
        budgets = self.budget.by_recipe(self.recipes)
        own = {name: facts.fingerprint for name, facts in self.own_corpora.items()}
        return PlannedTrainings(
            self.plan,
            self.out,
            dumped,
            self.corpus.fingerprint,
            budgets,
            self.starts,
            own,
            {name: self._fingerprints[path] for name, path in self.held_out.items()},
            self.unmeasured,
            self._tokenizers,
            self.teachers,
        )

    @cached_property
    def _tokenizers(self) -> dict[str, str]:
        """What tells the tokenizers of recipes from each other, by label; none where all have the plan's corpus."""
        if not self.own_corpora or not self.plan.tasks:
            return {}  # their corpora do
        folders = {item.name: self.texts[item.name].tokenizer for item in self.plan.recipes if not item.as_it_is}
        known = {folder: identity_of(Tokenizer.load(folder)) for folder in set(folders.values())}
        return {name: hashlib.sha256(known[folder].encode()).hexdigest()[:16] for name, folder in folders.items()}

    def _unmeasured(self) -> dict[tuple[str, str], str]:
        """The reasons why recipes are left out of measures, by the recipe's label and the measure's title.

        Raises:
            UserError: a measure is for no recipe.
        """
        reasons: dict[tuple[str, str], str] = {}
        for measure in self.plan.measures:
            refused = {name: measure.refused(recipe) for name, recipe in self.recipes.items()}
            if None not in refused.values():
                why = listed([f"{quoted(name)} {reason}" for name, reason in refused.items()])
                raise UserError(f"task {quoted(measure.title)}: {why}")
            reasons |= {(name, measure.title): reason for name, reason in refused.items() if reason is not None}
        return reasons

    def step_times(self, names: list[str]) -> Sequence[tuple[float, float]]:
        """Seconds of a step, and of its work, of recipes by their labels, measured; those of one text in turns."""
        of_text: dict[Path, list[str]] = {}
        for name in names:
            of_text.setdefault(self.texts[name].path, []).append(name)
        times: dict[str, tuple[float, float]] = {}
        for path, those in of_text.items():
            measured = self.engine.step_times([self.recipes[name] for name in those], path, self.plan.device)
            times |= dict(zip(those, measured, strict=True))
        return [times[name] for name in names]

    def read(self) -> list[Path]:
        """The files and folders that trainings read."""
        files = [file for task in self.plan.tasks for file in task.files.values() if file and not on_hub(file)]
        runs = dict.fromkeys(Path(each.run) for of_seeds in self.starts.values() for each in of_seeds.values())
        files += [file for measure in self.plan.measures for file in measure.files.values()]
        runs |= dict.fromkeys(Path(name).resolve() for names in self.teachers.values() for name in names)
        corpora = dict.fromkeys([*self.corpora, *self.held_out.values()])
        return [*(folder for corpus in corpora for folder in corpus_folders(str(corpus))), *files, *runs]

    def _side_by_side(self) -> SharedMachine | None:
        """The trainings' shares of the machine; None: one at a time, with the threads that torch has."""
        if self.workers is not None:
            return SharedMachine(self.workers.threads, [self.plan.device] * self.workers.slots)
        if self.asked is None:
            return None
        threads = self.budget.facts.threads
        if threads is None and self.budget.begun:  # an older version's, whose runs had as many as torch
            threads = _trained_with(self.out)
        vocabulary = max(open_corpus(path).tokenizer.size for path in self.corpora)
        return self.asked.shares([*self.recipes.values()], vocabulary, self.plan.device, threads)
