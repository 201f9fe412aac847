"""A plan: the recipes to compare, the tasks and the budget."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PositiveInt, ValidationInfo, field_validator, model_validator

from bakeoff.comparison.latency import LatencyPlan
from bakeoff.comparison.planning.asking import Asking, Margin, check_asked, margin_of
from bakeoff.comparison.planning.grid import Factors, GridFacts
from bakeoff.comparison.planning.names import MOST_SEEDS, check_names
from bakeoff.comparison.planning.own_settings import AS_IT_IS, known_budget, until_a_loss
from bakeoff.comparison.planning.recipe_plan import RecipePlan, checked_grid
from bakeoff.comparison.planning.recipe_sources import found_corpus
from bakeoff.comparison.planning.search_plan import SearchPlan, Share
from bakeoff.comparison.planning.task_plan import TaskPlan, is_measure, places, with_data_sets
from bakeoff.config import LARGEST, Config
from bakeoff.errors import UserError, at_home, nearest, path_of
from bakeoff.optimization.early_stopping import LossUnit
from bakeoff.reading.hub import on_hub
from bakeoff.tasks.measures.measure import MeasureConfig
from bakeoff.tasks.measures.registry import MEASURES
from bakeoff.yaml_files import read_yaml


class Plan(Config):
    """A comparison: recipes x seeds x tasks under one budget."""

    title: str = "Which model to pre-train"
    """Heading of the report."""
    corpus: Path
    """Directory of the prepared corpus, or several with weights: `wiki:0.7,novels:0.3`."""
    grid: Factors = Field(default={})
    """Factors, as a recipe's `grid` has them, over all recipes of the plan; of several, the recipe is a factor, too."""
    recipes: list[RecipePlan] = Field(min_length=1)
    """The recipes to compare; one with a grid stands for a recipe for each cell."""
    budget: str | None = None
    """Budget of each pre-training: minutes=10, steps=1000, tokens=5M or flops=1e15. It is required, unless every recipe
    has one of its own. `{held_out: 3.2, at_most: steps=1000}`: until the held-out loss is reached; with
    `bits_per_byte: 1.6` in its place, until one in bits a byte of text is."""
    until_loss: float | None = Field(default=None, gt=0)
    """Held-out loss, in nats a target, at which each pre-training ends, before its budget is spent; the same as
    `held_out` of a budget."""
    until_bits_per_byte: float | None = Field(default=None, gt=0)
    """Held-out loss in bits a byte of text, likewise; the same as `bits_per_byte` of a budget. It compares models that
    predict every token, whatever their tokenizers."""
    seeds: list[int] = Field(default=[0, 1, 2], min_length=1)
    """Number of seeds, or a list of seeds; fewer than 3 allow no claim."""
    search: SearchPlan | None = None
    """The search of each recipe's values before its first training; left out: recipes keep their own values."""
    tasks: list[TaskPlan] = Field(default=[])
    """The tasks on which every recipe is fine-tuned; without tasks and measures, the held-out text is measured."""
    measures: list[Annotated[MeasureConfig, MEASURES]] = Field(default=[])
    """What pre-trained recipes are measured on without fine-tuning: `minimal_pairs`, `held_out_text`, `fresh_heads`.
    They may as well stand among `tasks`."""
    checkpoints: list[Share] = Field(default=[])
    """Shares of the budget, such as 3 %, after which each pre-training is also ended, with a learning rate that falls
    to zero in the last fifth, and fine-tuned: from which budget on does pre-training pay?"""
    from_scratch: bool = True
    """Also fine-tune each recipe from random weights, to measure the gain of pre-training."""
    finetune_seeds: PositiveInt = 1
    """Fine-tunings nested in each seed; they are averaged and do not count as seeds."""
    margin: Margin | dict[str, Margin] | None = None
    """The difference from which on recipes are unlike, in points; or one for each task, by its name, where it is of
    errors and losses in their unit. With a margin, verdicts also say which recipes are equivalent."""
    baseline: str | None = None
    """The recipe, by its name, with which alone all others are compared; left out: every two are compared."""
    trends: dict[str, list[str]] = Field(default={})
    """Names of three recipes or more, in the order in which something grows, such as `width: [small, middle, large]`:
    does the score rise along it?"""
    latency: LatencyPlan = LatencyPlan()
    """The texts that each fine-tuned model's latency is measured on, after the last training."""
    device: str = "auto"
    """Device of all trainings: auto, cpu, cuda or mps."""

    @model_validator(mode="before")
    @classmethod
    def _measured(cls, values: Any) -> Any:
        """Move measures from `tasks` to `measures`; a plan without either measures the held-out text."""
        if not isinstance(values, Mapping):
            return values
        tasks, measures = ([] if values.get(key) is None else values[key] for key in ("tasks", "measures"))
        if not isinstance(tasks, list) or not isinstance(measures, list):
            return values
        try:
            moved = [
                MEASURES[each["kind"]].parse(each, f"tasks.{i}") for i, each in enumerate(tasks) if is_measure(each)
            ]
        except UserError as error:
            raise ValueError(str(error)) from None
        kept = [each for each in tasks if not is_measure(each)]
        if not kept and not moved and not measures:
            measures = [{"kind": "held_out_text"}]
        return {**values, "tasks": kept, "measures": [*measures, *moved]}

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{json.dumps(value, default=str)} is no number of seeds such as 3, and no list of them")
        if value > MOST_SEEDS:
            raise ValueError(f"{value} are too many; give {MOST_SEEDS:,} at most, or a list")
        return list(range(value))

    @model_validator(mode="before")
    @classmethod
    def _until(cls, values: Any) -> Any:
        return until_a_loss(values)

    @field_validator("grid")
    @classmethod
    def _effective_grid(cls, value: Factors) -> Factors:
        return checked_grid(value)

    @field_validator("recipes")
    @classmethod
    def _cells(cls, value: list[RecipePlan], info: ValidationInfo) -> list[RecipePlan]:
        grid = info.data.get("grid", {})
        return [each for entry, item in enumerate(value) for each in item.expanded(entry, grid, len(value) > 1)]

    @field_validator("checkpoints")
    @classmethod
    def _before_the_end(cls, value: list[float]) -> list[float]:
        if len(set(value)) < len(value):
            raise ValueError(f"{100 * max(value, key=value.count):g} % stands there twice")
        return sorted(each for each in value if each < 1)  # the whole is trained anyway

    @field_validator("tasks")
    @classmethod
    def _points(cls, value: list[TaskPlan]) -> list[TaskPlan]:
        return [each for task in value for each in task.expanded()]

    @field_validator("budget", mode="before")
    @classmethod
    def _known_budget(cls, value: Any) -> Any:
        return known_budget(value)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        check_names("recipes", [item.name for item in self.recipes])
        check_names("tasks", self._task_names)
        if len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ValueError(f"seeds: {self.seeds} are not all different, or below 0; give others")
        if (largest := max(self.seeds)) > LARGEST:
            raise ValueError(f"seeds: {largest} is beyond the whole numbers of 64 bits; give one such as 0")
        return self

    @model_validator(mode="after")
    def _distinct_grids(self) -> Self:
        """Refuse two grids of one name, which the report could not tell apart."""
        entries: dict[str, int] = {}
        for item in self.recipes if not self.grid else ():
            if item.cell is not None and entries.setdefault(name := item.cell.grid, item.entry) != item.entry:
                raise ValueError(f"recipes.{item.entry}: two grids are called '{name}'; give one another `name`")
        return self

    @model_validator(mode="after")
    def _budgeted(self) -> Self:
        if None not in (self.until_loss, self.until_bits_per_byte):
            raise ValueError("until_bits_per_byte: would have no effect: until_loss ends the trainings; leave one out")
        without = [item.name for item in self.recipes if item.budget is None]
        if self.budget is None and without:
            raise ValueError("budget: this key is required, unless every recipe has a budget of its own")
        if self.budget is not None and not without:
            raise ValueError("budget: would have no effect: every recipe has a budget of its own; leave it out")
        if self.search is not None and all(item.as_it_is or not item.search for item in self.recipes):
            why = "no recipe is trained" if all(item.as_it_is for item in self.recipes) else "none is to be searched"
            raise ValueError(f"search: would have no effect: {why}")
        for item in self.recipes if not self.tasks else ():
            if item.finetune:
                raise ValueError(f"recipes.{item.entry}.finetune: would have no effect: nothing is fine-tuned")
        for key in ("finetune_seeds", "latency") if not self.tasks else ():
            if key in self.model_fields_set and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key}: would have no effect: nothing is fine-tuned")
        if not self.tasks and "from_scratch" in self.model_fields_set and self.from_scratch:
            raise ValueError("from_scratch: would have no effect: nothing is fine-tuned")
        return self

    @model_validator(mode="after")
    def _asked_of_what_is_there(self) -> Self:
        recipes = [item.name for item in self.recipes]
        check_asked(self.margin, self.baseline, self.trends, recipes, self._task_names)
        in_points = [*(each.in_points for each in self.tasks), *(each.in_points for each in self.measures)]
        if isinstance(self.margin, float) and not any(in_points):
            raise ValueError(
                f"margin: {self.margin:g} would have no effect: no score is in points; give one for each task in its "
                f"own unit, {{{self._task_names[0]}: {self.margin:g}}}"
            )
        return self

    @property
    def until(self) -> tuple[float, LossUnit] | None:
        """The held-out loss at which each pre-training ends, and its unit; None: the plan has none."""
        if self.until_bits_per_byte is not None:
            return self.until_bits_per_byte, "bits per byte"
        return None if self.until_loss is None else (self.until_loss, "nats")

    @property
    def _task_names(self) -> list[str]:
        return [*(task.name for task in self.tasks), *(each.title for each in self.measures)]

    def asking(self, task: str | None, unit: str, looks: int) -> Asking:
        """How the questions of a task, or of all together, are asked; see `asking_of`."""
        return Asking(margin_of(self.margin, task, self._task_names, unit), self.baseline, looks)

    def budget_of(self, item: RecipePlan) -> str:
        """The budget of a recipe's pre-trainings; of one that is compared as it is, `AS_IT_IS`."""
        return item.budget or self.budget or AS_IT_IS

    def task_of(self, item: RecipePlan, task: TaskPlan) -> TaskPlan:
        """A task with the settings of a recipe's fine-tuning on it."""
        return task.model_copy(update={"finetune": item.own_finetuning(task.finetune)})

    @model_validator(mode="after")
    def _effective(self) -> Self:
        """Refuse values that the search of the same keys would replace."""
        for item in self.recipes:
            for key in item.searched_anyway(self.search.over if self.search else ()):
                where = "grid" if item.cell and key in item.cell.values else "set"
                raise ValueError(
                    f"recipes.{item.entry}.{where}: {key} would have no effect: the plan searches it; leave it out, or "
                    "give the recipe `search: false`"
                )
        return self

    def require_recipes(self, names: Iterable[str]) -> None:
        """Refuse names for `--only` that are of no recipe and of no grid.

        Raises:
            UserError: a name is unknown; the message has the nearest one.
        """
        known = dict.fromkeys(name for item in self.recipes for name in item.names)
        for name in names:
            if name not in known:
                raise UserError(f"--only {name}: the plan has no such recipe{nearest(name, known)}")

    @property
    def grids(self) -> list[GridFacts]:
        """The grids, with the recipe of each cell."""
        cells: dict[str, dict[str, dict[str, str]]] = {}
        for item in self.recipes:
            if item.cell is not None:
                cells.setdefault(item.cell.grid, {})[item.name] = item.cell.levels
        return [
            GridFacts(
                name=name,
                factors={
                    title: list(dict.fromkeys(levels[title] for levels in of_grid.values()))
                    for title in next(iter(of_grid.values()))
                },
                cells=of_grid,
            )
            for name, of_grid in cells.items()
        ]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a YAML file, to whose folder the plan's relative paths are relative.

        Raises:
            UserError: one line with the file and the key, for anything that is wrong or missing.
        """
        path = path_of(path, "plan")
        values = read_yaml(path)
        if isinstance(values, Mapping) and "recipes" not in values and {"model", "objective", "extends"} & {*values}:
            raise UserError(f"{path}: is a recipe, not a plan; a plan names it under `recipes` (docs/comparison.md)")
        values = with_data_sets(values, path)
        return cls.parse(values, str(path))._resolved(path, *places(values))

    def _resolved(self, path: Path, of_tasks: list[str], of_measures: list[str]) -> Self:
        """The plan with absolute paths, where its tasks and measures stand at these places.

        Raises:
            UserError: a file or directory does not exist.
        """

        def find(key: str, value: Path) -> Path:
            if on_hub(value):
                return value
            resolved = (path.parent / at_home(value)).resolve()
            if not resolved.exists():
                raise UserError(f"{path}: {key}: there is no file {resolved}")
            return resolved

        tasks = []
        entries = list(dict.fromkeys(task.point.curve if task.point else task.name for task in self.tasks))
        for task in self.tasks:
            where = of_tasks[entries.index(task.point.curve if task.point else task.name)]
            files = {name: find(f"{where}.{name}", file) for name, file in task.files.items() if file is not None}
            tasks.append(task.model_copy(update={"data": task.data.model_copy(update=files)}))
        recipes = [item.resolved(f"{path}: recipes.{item.entry}", path.parent, self.seeds) for item in self.recipes]
        corpus = found_corpus(self.corpus, path.parent, f"{path}: corpus")
        measures = [
            each.model_copy(update={name: find(f"{where}.{name}", file) for name, file in each.files.items()})
            for each, where in zip(self.measures, [*of_measures, "measures"], strict=False)
        ]
        return self.model_copy(update={"corpus": corpus, "recipes": recipes, "tasks": tasks, "measures": measures})
