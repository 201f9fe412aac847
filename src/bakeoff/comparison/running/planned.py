"""The planned trainings of a comparison: the directory of each, and the settings that decide its outcome."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.planning.names import directory_name
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.planning.recipe_plan import RecipePlan
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.results import Initialisation
from bakeoff.comparison.running.equal_trainings import in_settings, without_pretraining
from bakeoff.comparison.running.planned_training import PlannedTraining, checksum_of, of_task, with_teachers
from bakeoff.display.wording import quoted
from bakeoff.tasks.measures.measure import MeasureConfig


@dataclass(frozen=True)
class PlannedPretraining(PlannedTraining):
    """The pre-training of one recipe with one seed."""

    recipe: RecipePlan
    seed: int

    @property
    def title(self) -> str:
        """The pre-training in words: pre-training bert."""
        return f"pre-training {quoted(self.recipe.name)}"


@dataclass(frozen=True)
class PlannedCooldown(PlannedPretraining):
    """The pre-training of one recipe and seed that ends at a share of the budget, with a learning rate that falls."""

    share: float
    begins_from: PlannedPretraining
    """The whole pre-training, which leaves a copy to go on from."""

    @property
    def title(self) -> str:
        """The pre-training in words: pre-training bert with 10 % of its budget."""
        return f"{super().title} with {100 * self.share:g} % of its budget"


@dataclass(frozen=True)
class FinishedRun(PlannedPretraining):
    """In place of a pre-training, the run of a recipe that is compared as it is."""

    @property
    def finished(self) -> bool:
        """It is there already."""
        return True


@dataclass(frozen=True)
class PlannedFinetuning(PlannedTraining):
    """The fine-tuning of one recipe, seed, task, initialisation and nested seed."""

    recipe: RecipePlan
    seed: int
    task: TaskPlan
    initialisation: Initialisation
    finetune_seed: int
    begins_from: PlannedPretraining
    """The pre-training of the same recipe and seed, whose weights the fine-tuning takes unless it is from scratch."""
    read_of_recipe: dict[str, Any] = field(default_factory=dict)
    """What a fine-tuning from scratch reads of the recipe and the corpus, in place of the whole pre-training."""

    @property
    def decisive(self) -> dict[str, Any]:
        """See `PlannedTraining`; from scratch a recipe's text, budget or masks change nothing."""
        if self.initialisation == "pretrained":
            return self.settings
        return {**self.settings, "pretraining": self.read_of_recipe}

    @property
    def title(self) -> str:
        """The fine-tuning in words: fine-tuning bert on reviews from scratch."""
        start = "" if self.initialisation == "pretrained" else " from scratch"
        after = _after(self.begins_from)
        return f"fine-tuning {quoted(self.recipe.name)} on {quoted(self.task.name)}{start}{after}"

    @property
    def random_seed(self) -> int:
        """The seed of row order, head and dropout: another one for each seed and nested seed."""
        return self.seed + 1_000_003 * self.finetune_seed


@dataclass(frozen=True)
class PlannedMeasurement(PlannedTraining):
    """The measurement of one recipe's run of a seed, without fine-tuning."""

    recipe: RecipePlan
    seed: int
    measure: MeasureConfig
    begins_from: PlannedPretraining
    """The pre-training whose run is measured."""

    @property
    def title(self) -> str:
        """The measurement in words: measuring bert on minimal pairs."""
        return f"measuring {quoted(self.recipe.name)} on {quoted(self.measure.title)}{_after(self.begins_from)}"


def _after(before: PlannedPretraining) -> str:
    """The share of the budget that a pre-training had, in words; empty for the whole of it."""
    return f" after {100 * before.share:g} % of its budget" if isinstance(before, PlannedCooldown) else ""


AnyTraining = PlannedPretraining | PlannedFinetuning | PlannedMeasurement


@dataclass(frozen=True)
class PlannedTrainings:
    """All trainings of a plan, with the recipes, the budgets and the weights that decide their settings."""

    plan: Plan
    out: Path
    recipes: dict[str, dict[str, Any]]
    """The complete recipes, by label."""
    corpus: str
    """The corpus's fingerprint."""
    budgets: dict[str, str]
    """The budget of each recipe's pre-trainings, by label, such as `steps=1000`."""
    starts: Mapping[str, Mapping[int, StartFacts]] = field(default_factory=dict)
    """The runs that recipes start from, by label and seed."""
    own_corpora: Mapping[str, str] = field(default_factory=dict)
    """The fingerprints of the corpora of recipes with another one, by label."""
    held_out: Mapping[str, str] = field(default_factory=dict)
    """The fingerprints of the corpora whose held-out text recipes are measured on, by label."""
    unmeasured: Collection[tuple[str, str]] = ()
    """The recipes' labels and the measures' titles that do not go together."""
    tokenizers: Mapping[str, str] = field(default_factory=dict)
    """What tells the tokenizers of recipes from others, by label; of recipes that are left out, their corpus does."""
    teachers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The digests of the weights of the runs that recipes learn from, by label and name."""

    def pretraining(self, recipe: RecipePlan, seed: int) -> PlannedPretraining:
        """The pre-training of a recipe with a seed; of one that is compared as it is, the run itself."""
        before = self._before(recipe, seed)
        if recipe.as_it_is:
            return FinishedRun(Path(self.starts[recipe.name][seed].run), "summary.json", before, recipe, seed)
        return PlannedPretraining(self._of_seed(recipe, seed) / "pretrain", "summary.json", before, recipe, seed)

    def cooldown(self, recipe: RecipePlan, seed: int, share: float) -> PlannedCooldown:
        """The pre-training of a recipe with a seed that ends at a share of the budget."""
        directory = self._of_seed(recipe, seed) / f"after-{100 * share:g}-percent" / "pretrain"
        settings = {**self._before(recipe, seed), "checkpoint": share}
        before = self.pretraining(recipe, seed)
        return PlannedCooldown(directory, "summary.json", settings, recipe, seed, share, before)

    def cooldowns(self, recipe: RecipePlan, seed: int) -> Iterator[PlannedCooldown]:
        """The pre-trainings of a recipe with a seed that end before the whole budget is spent."""
        for share in () if recipe.as_it_is else self.plan.checkpoints:
            yield self.cooldown(recipe, seed, share)

    def finetunings_after(self, before: PlannedCooldown) -> Iterator[PlannedFinetuning]:
        """The fine-tunings of a pre-training that ended before the whole budget was spent."""
        for task in self.plan.tasks:
            for nested in range(self.plan.finetune_seeds):
                yield self._finetuning(before.recipe, before.seed, task, "pretrained", nested, before.share)

    def measurements_after(self, before: PlannedCooldown) -> Iterator[PlannedMeasurement]:
        """The measurements of a pre-training that ended before the whole budget was spent."""
        for measure in self._measures(before.recipe):
            yield self._measurement(before.recipe, before.seed, measure, before)

    def _of_seed(self, recipe: RecipePlan, seed: int) -> Path:
        return self.out / "runs" / directory_name(recipe.name) / f"seed-{seed}"

    def _before(self, recipe: RecipePlan, seed: int) -> dict[str, Any]:
        """What decides the outcome of a pre-training; what is compared as it is has a run alone."""
        search = self.plan.search if recipe.search and not recipe.as_it_is else None
        start = self.starts[recipe.name][seed] if recipe.name in self.starts else None
        grown = {} if start is None or start.grow is None else {"grow": start.grow, "grow_by": start.grow_by}
        return {
            "search": None if search is None else search.model_dump(mode="json"),
            "recipe": self.recipes[recipe.name],
            "start": None if start is None else start.weights,
            **grown,
            "budget": self.budgets[recipe.name],
            "seed": seed,
            "corpus": self._vocabulary(recipe, seed),
            "device": self.plan.device,
            **with_teachers(self.teachers.get(recipe.name, {})),
        }

    def _vocabulary(self, recipe: RecipePlan, seed: int) -> str:
        """What tells the text of a recipe's models, or their tokenizer, from others."""
        if recipe.as_it_is:
            return self.starts[recipe.name][seed].weights
        return self.own_corpora.get(recipe.name, self.corpus)

    def finetunings(self, recipe: RecipePlan, seed: int) -> Iterator[PlannedFinetuning]:
        """The fine-tunings of a recipe with a seed: on every task, nested ones, pre-trained and from scratch."""
        starts: tuple[Initialisation, ...] = ("pretrained", "scratch") if self.plan.from_scratch else ("pretrained",)
        for task in self.plan.tasks:
            for nested in range(self.plan.finetune_seeds):
                for start in starts:
                    yield self._finetuning(recipe, seed, task, start, nested)

    def _finetuning(
        self,
        recipe: RecipePlan,
        seed: int,
        task: TaskPlan,
        start: Initialisation,
        nested: int,
        share: float | None = None,
    ) -> PlannedFinetuning:
        before = self.pretraining(recipe, seed) if share is None else self.cooldown(recipe, seed, share)
        above = self._of_seed(recipe, seed) if share is None else before.directory.parent
        directory = of_task(above, task, f"{start}-{nested}")
        own = self.plan.task_of(recipe, task)
        of_model = own.finetune.model_dump(mode="json")
        settings = {**self.tasks[task.name], "finetune_seed": nested, "finetune": of_model}
        if None not in (task.data.dev, task.data.test):
            del settings["cluster_column"]  # which then decides verdicts, and nothing that is trained
        read = self._read_from_scratch(recipe, seed) if start == "scratch" else {}
        settings["pretraining"] = before.settings
        if read:
            kept = {"model": self.recipes[recipe.name]["model"], "corpus": self._vocabulary(recipe, seed), "seed": seed}
            settings["pretraining"] = {**kept, **in_settings(read)}
        return PlannedFinetuning(directory, "results.json", settings, recipe, seed, own, start, nested, before, read)

    def _read_from_scratch(self, recipe: RecipePlan, seed: int) -> dict[str, Any]:
        """What a fine-tuning from scratch reads of a recipe and its corpus."""
        tokenizer = self.tokenizers.get(recipe.name) or self._vocabulary(recipe, seed)
        return {**without_pretraining(self.recipes[recipe.name]), "tokenizer": tokenizer, "seed": seed}

    def measurements(self, recipe: RecipePlan, seed: int) -> Iterator[PlannedMeasurement]:
        """The measurements of a recipe with a seed; seeds that are the same run have the same measurement."""
        if recipe.as_it_is:
            weights = self.starts[recipe.name][seed].weights
            seed = next(each for each in self.plan.seeds if self.starts[recipe.name][each].weights == weights)
        before = self.pretraining(recipe, seed)
        for measure in self._measures(recipe):
            yield self._measurement(recipe, seed, measure, before)

    def _measures(self, recipe: RecipePlan) -> list[MeasureConfig]:
        """What a recipe is measured on."""
        return [each for each in self.plan.measures if (recipe.name, each.title) not in self.unmeasured]

    def _measurement(
        self, recipe: RecipePlan, seed: int, measure: MeasureConfig, before: PlannedPretraining
    ) -> PlannedMeasurement:
        above = before.directory.parent if isinstance(before, PlannedCooldown) else self._of_seed(recipe, seed)
        directory = above / directory_name(measure.title) / "pretrained-0"
        files = {name: checksum_of(path) for name, path in measure.files.items()}
        settings = {
            **{name: value for name, value in measure.model_dump(mode="json").items() if name not in files},
            "files": files,
            "text": self.held_out.get(recipe.name) if measure.reads_text else None,
            "pretraining": before.settings,
        }
        return PlannedMeasurement(directory, "results.json", settings, recipe, seed, measure, before)

    def renewed(self, training: AnyTraining) -> AnyTraining:
        """The training with the recipes and budgets of these, which may be newer than its own."""
        if isinstance(training, PlannedCooldown):
            return self.cooldown(training.recipe, training.seed, training.share)
        if isinstance(training, PlannedPretraining):
            return self.pretraining(training.recipe, training.seed)
        if isinstance(training, PlannedMeasurement):
            before = self.renewed(training.begins_from)
            assert isinstance(before, PlannedPretraining)
            return self._measurement(training.recipe, training.seed, training.measure, before)
        share = training.begins_from.share if isinstance(training.begins_from, PlannedCooldown) else None
        recipe, seed, nested = training.recipe, training.seed, training.finetune_seed
        return self._finetuning(recipe, seed, training.task, training.initialisation, nested, share)

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The settings of each task, by name; files count by a checksum, so that a moved folder is no change."""
        return {
            task.name: {
                **{key: value for key, value in task.model_dump(mode="json").items() if key not in ("name", *files)},
                "files": {split: checksum_of(path) for split, path in files.items()},
                # Older versions took the first ones; what these have learned from is not to be mixed with it.
                **({} if task.data.train_rows is None else {"train_rows_chosen": "of every class its share"}),
            }
            for task, files in ((task, task.files) for task in self.plan.tasks)
        }

    def all(self) -> Iterator[AnyTraining]:
        """Every training and measurement, in the order in which they run: all recipes of a seed, then the next seed."""
        for seed in self.plan.seeds:
            for recipe in self.plan.recipes:
                yield from self.of(recipe, seed)

    def of(self, recipe: RecipePlan, seed: int) -> Iterator[AnyTraining]:
        """Every training and measurement of a recipe with a seed."""
        if not recipe.as_it_is:
            yield self.pretraining(recipe, seed)
        yield from self.finetunings(recipe, seed)
        for cooldown in self.cooldowns(recipe, seed):
            yield cooldown
            yield from self.finetunings_after(cooldown)
            yield from self.measurements_after(cooldown)
        # That of seeds with one run is the first one's.
        yield from (each for each in self.measurements(recipe, seed) if each.seed == seed)
