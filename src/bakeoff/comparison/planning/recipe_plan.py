"""A recipe of a plan: its name, the values that the plan changes, and the weights that it starts from."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from bakeoff.comparison.planning.grid import RECIPE, Cell, Factors, cells_of, keys_of
from bakeoff.comparison.planning.own_settings import FROM_CHANCE, OwnSettings
from bakeoff.comparison.planning.recipe_sources import SEED, YAML, elsewhere, found_corpus, label_of, of_seed, source_of
from bakeoff.config import differing
from bakeoff.errors import UserError, at_home
from bakeoff.overrides import overlap, within
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

LONGEST = 120
"""The most characters of a name."""
Name = Annotated[str, Field(min_length=1, max_length=LONGEST)]

GRID = "grid"
"""The name of a plan's grid over several recipes."""

REMARKS = ("paper", "published")
"""Keys of a recipe that say where it comes from."""

NO_EFFECT = {
    "training.budget": "a recipe's budget is its `budget` in the plan, or else that of the plan",
    "training.average_last": "the weights at the end are compared, and no mean of the last ones",
    "name": "the report names a recipe by `name` beside `recipe`",
    **dict.fromkeys(REMARKS, "it is a remark, and changes nothing that is trained"),
}
"""Keys of a recipe whose values, and those of all keys below, a comparison does not use, with the reasons."""

TOKENIZER = "tokenizer"
"""The section of a recipe that its text decides, which a plan prepares anew for another one."""

TEACHERS = "training.distillation.teachers"
"""The key of a recipe whose values are folders of runs."""


def require_effect(keys: Iterable[str]) -> None:
    """Refuse keys of a recipe that a comparison does not use.

    Raises:
        ValueError: a key has no effect; the message says why.
    """
    for key in keys:
        for unused, reason in NO_EFFECT.items():
            if within(key, unused):
                raise ValueError(f"{key} would have no effect: {reason}")
        if key in RecipePlan.model_fields and key != TOKENIZER:
            raise ValueError(f"{key}: it is no key of a recipe; in a plan it stands beside `recipe`")


def with_teachers_of(folder: Path, key: str, value: Any) -> Any:
    """The value of a recipe's key, in which teachers that stand in a plan's folder have absolute paths.

    Others stay as they are: a recipe's teachers are relative to the folder in which a command is given.
    """
    if isinstance(value, Mapping) and within(TEACHERS, key):
        return {name: with_teachers_of(folder, f"{key}.{name}", each) for name, each in value.items()}
    if isinstance(value, list) and key == TEACHERS:
        return [with_teachers_of(folder, f"{key}.{index}", each) for index, each in enumerate(value)]
    if isinstance(value, str) and within(key, TEACHERS):
        return elsewhere(value, folder) or value
    return value


def checked_grid(grid: Factors) -> Factors:
    """A grid, once it is known to be one whose keys have an effect.

    Raises:
        ValueError: it is none, has no factor, or a key has no effect.
    """
    if not grid:
        raise ValueError("no factor given; give one as KEY: [VALUE, VALUE], or leave the grid out")
    cells_of(GRID, grid)
    require_effect(keys_of(grid))
    return grid


class RecipePlan(OwnSettings):
    """A recipe of the comparison; in a plan, a plain string stands for `recipe` alone."""

    recipe: Name
    """A recipe's name, or a YAML file; or the same as `start`, which is then trained further by its own recipe."""
    start: Name | None = None
    """Source of the first weights: a run, a folder in the form of transformers, or a name on the Hub; left out: random
    weights, or the weights of `recipe` where that names such a source. `random`: random weights there, too. All seeds
    start from it, and verdicts are about these weights alone; with {seed} in it, as in `runs/bert/seed-{seed}`, each
    seed starts from a run of its own."""
    name: Name
    """The recipe's label in the report; left out: the recipe's name, or the last part of a path."""
    set: dict[str, Any] = Field(default={})
    """Overrides by dotted key, such as training.optimizer.lr: 1e-3."""
    grid: Factors = Field(default={})
    """Factors, each a dotted key with its values, or a name with named levels and the values that they set: the entry
    stands for a recipe for every combination, and the report has their main effects and interactions."""
    search: bool = True
    """Whether the recipe's values are searched if the plan has a `search`."""

    _entry: int = PrivateAttr(default=0)
    _cell: Cell | None = PrivateAttr(default=None)

    @property
    def entry(self) -> int:
        """The number of the plan's entry that the recipe comes from, from 0 on."""
        return self._entry

    @property
    def names(self) -> list[str]:
        """The label, and what stands for all cells of the recipe's grid: the grid's name, or the plan's recipe."""
        of_grid = [] if self._cell is None else [self._cell.grid, self._cell.levels.get(RECIPE, self._cell.grid)]
        return list(dict.fromkeys([self.name, *of_grid]))

    @property
    def cell(self) -> Cell | None:
        """The cell of a grid that the recipe is; None: it belongs to none."""
        return self._cell

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, values: Any) -> Any:
        if isinstance(values, str):
            values = {"recipe": values}
        if not isinstance(values, Mapping):
            return values
        if values.get("recipe") is None and isinstance(values.get("start"), str):
            values = {**values, "recipe": values["start"]}
        if values.get("name") is None and isinstance(values.get("recipe"), str):
            values = {**values, "name": label_of(values["recipe"])}
        return values

    @field_validator("set")
    @classmethod
    def _effective(cls, value: dict[str, Any]) -> dict[str, Any]:
        require_effect(value)
        return value

    @field_validator("grid")
    @classmethod
    def _effective_grid(cls, value: Factors, info: ValidationInfo) -> Factors:
        for key, given in itertools.product(keys_of(checked_grid(value)), info.data.get("set", {})):
            if overlap(key, given):
                raise ValueError(f"{key} is under `set` as well; leave one of the two out")
        return value

    @property
    def starts_from_a_run(self) -> bool:
        """Whether the first weights are a run's or a model's."""
        return self.start is not None and self.start != FROM_CHANCE

    @property
    def of_recipe(self) -> dict[str, Any]:
        """The overrides without those of the tokenizer, which is the text's."""
        return {key: value for key, value in self.set.items() if not within(key, TOKENIZER)}

    @property
    def own_tokenizer(self) -> dict[str, Any] | Path | None:
        """The tokenizer of the recipe's text: settings that the corpus's tokenizer has otherwise, or a file or folder.

        None: the tokenizer of the corpus, or of the start.

        Raises:
            UserError: `tokenizer` and `set` both say it, or there is no such setting.
        """
        sets = {key.removeprefix(f"{TOKENIZER}."): value for key, value in self.set.items() if within(key, TOKENIZER)}
        if isinstance(sets.get(TOKENIZER), Mapping):
            sets = {**sets.pop(TOKENIZER), **sets}
        if not sets:
            given = self.tokenizer
            return given.model_dump(include=given.model_fields_set) if isinstance(given, TokenizerConfig) else given
        if self.tokenizer is not None:
            raise UserError("set: give all of the tokenizer's settings under `tokenizer`, or under `set`")
        parsed = TokenizerConfig.parse(sets, TOKENIZER)
        return parsed.model_dump(include=parsed.model_fields_set)

    def changed_otherwise(self, other: Self) -> frozenset[str]:
        """The keys that this recipe and another one have otherwise, those of `set` by themselves; not their names."""
        one, two = ({**each.model_dump(mode="json", exclude={"name", "set"}), **each.set} for each in (self, other))
        return frozenset(key for key, _, _ in differing(one, two))

    def searched_anyway(self, searched: Iterable[str]) -> Iterator[str]:
        """The keys of `set`, or of the grid, whose values a search of these keys replaces."""
        return (key for key in self.set if self.search and any(within(key, each) for each in searched))

    def expanded(self, entry: int, of_plan: Factors, several: bool) -> "list[RecipePlan]":
        """The recipe itself, or one for each cell of its grid.

        Args:
            entry: the number of the entry in the plan.
            of_plan: the grid of the whole plan; empty: it has none.
            several: whether this grid is over several recipes.

        Raises:
            ValueError: a grid of the plan and one of the recipe, or a key that both set, or a label that is too long.
        """
        if of_plan and self.grid:
            raise ValueError(f"'{self.name}' has a grid, and the plan one for all recipes; leave one of them out")
        grid, items = of_plan or self.grid, []
        for cell in cells_of(GRID if of_plan and several else self.name, grid) if grid else [None]:
            item = self
            if cell is not None:
                label = f"{self.name}, {cell.name}"
                if len(label) > LONGEST:
                    raise ValueError(f"'{label}' is longer than {LONGEST} characters; give the grid's levels names")
                for key, given in itertools.product(cell.values, self.set):
                    if overlap(key, given):
                        raise ValueError(f"'{self.name}' sets {given}, and the plan's grid {key}; leave one out")
                item = self.model_copy(update={"name": label, "set": {**self.set, **cell.values}, "grid": {}})
                of_recipe = {RECIPE: self.name} if of_plan and several else {}
                item._cell = cell._replace(levels={**of_recipe, **cell.levels})
            item._entry = entry
            items.append(item)
        return items

    def resolved(self, where: str, folder: Path, seeds: Sequence[int]) -> Self:
        """The recipe's plan with absolute paths.

        Args:
            where: the key in the plan that an error message begins with.
            folder: the plan's folder, to which its paths are relative.
            seeds: the plan's seeds, each of which may start from a source of its own.

        Raises:
            UserError: the recipe's file is missing, or the source of its first weights; or a setting has no effect.
        """
        changes = {key: with_teachers_of(folder, key, value) for key, value in self.set.items()}
        sources, texts = self._sources(where, folder, seeds), self._texts(where, folder)
        found = self.model_copy(update={**sources, **texts, "set": changes})
        try:
            tokenizer = found.own_tokenizer
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        idle = next(found.without_effect(found.set, found.start, tokenizer is not None), None)
        if idle is not None:
            raise UserError(f"{where}: {idle}")
        return found

    def _sources(self, where: str, folder: Path, seeds: Sequence[int]) -> dict[str, str]:
        """The recipe's name or file, and the source of its first weights."""
        from bakeoff.recipe_files import recipe_names

        sources: dict[str, str] = {}
        if self.start is not None and self.start != FROM_CHANCE:
            start = source_of(self.start, folder, seeds)
            if start is None:
                named = (of_seed(self.start, seed) for seed in seeds)
                lost = next(name for name in named if elsewhere(name, folder) is None)
                path = (folder / at_home(lost)).resolve()
                raise UserError(f"{where}.start: there is no run or model {path}, and it is no name on the Hub")
            sources["start"] = start
        if self.recipe == self.start:
            if self.start == FROM_CHANCE:
                raise UserError(f"{where}: start: random: name the recipe, or the run whose architecture is wanted")
            return {**sources, "recipe": sources["start"]}
        of_run = None
        if self.recipe.endswith(YAML):
            file = (folder / at_home(self.recipe)).resolve()
            if not file.exists():
                raise UserError(f"{where}.recipe: there is no file {file}")
            sources["recipe"] = str(file)
        # A recipe's name is a recipe, whatever folders there are; `./NAME` is the folder.
        elif self.recipe not in recipe_names() and (of_run := source_of(self.recipe, folder, seeds)) is not None:
            if self.start is not None and self.start != FROM_CHANCE:
                raise UserError(f"{where}: {self.recipe} has weights of its own; name a recipe, or leave start out")
            sources |= {"recipe": of_run} if self.start else {"recipe": of_run, "start": of_run}
        elif SEED in self.recipe:
            raise UserError(f"{where}.recipe: there is no run or model {self.recipe} for every seed")
        if self.start == FROM_CHANCE and of_run is None:
            raise UserError(f"{where}: start: random would have no effect: a recipe begins with random weights")
        if self.as_it_is and (of_run is None or self.start is not None):
            raise UserError(f"{where}: budget: 0: what is compared as it is, is a run or a model; name it as `recipe`")
        return sources

    def _texts(self, where: str, folder: Path) -> dict[str, Path]:
        """The recipe's corpus, and the file or folder of its tokenizer."""
        texts = {}
        if self.corpus is not None:
            file = (folder / at_home(self.corpus)).resolve()
            texts["corpus"] = file if file.is_file() else found_corpus(self.corpus, folder, f"{where}.corpus")
        if isinstance(self.tokenizer, Path):
            path = (folder / at_home(self.tokenizer)).resolve()
            if not path.exists():
                raise UserError(f"{where}.tokenizer: there is no file or folder {path}")
            texts["tokenizer"] = path
        return texts
