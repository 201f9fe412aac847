"""A recipe of a plan: its name, the values that the plan changes, and the weights that it starts from."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.errors import UserError

Name = Annotated[str, Field(min_length=1, max_length=120)]

YAML = (".yaml", ".yml")

NO_EFFECT = {
    "tokenizer": "every recipe of a plan has the tokenizer of its corpus; `bakeoff prepare` makes one with another",
    "training.budget": "the plan's `budget` is that of every recipe",
    "training.average_last": "the weights at the end are compared, and no mean of the last ones",
    "name": "the report names a recipe by `name` beside `recipe`",
    "paper": "it is a remark, and changes nothing that is trained",
    "published": "it is a remark, and changes nothing that is trained",
}
"""Keys of a recipe whose values, and those of all keys below, a comparison does not use, with the reasons."""

HUB = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?")
"""A name on the Hub: OWNER/NAME, with @REVISION or not."""


def label_of(recipe: str) -> str:
    """The label of a recipe that has none in the plan."""
    if recipe.endswith(YAML):
        return Path(recipe).stem
    last = Path(recipe.partition("@")[0] if HUB.fullmatch(recipe) else recipe).name
    return last or recipe


def elsewhere(name: str, folder: Path) -> str | None:
    """The source of weights that a name stands for: a folder's absolute path, or a name on the Hub; None: neither."""
    path = (folder / Path(name).expanduser()).resolve()
    return str(path) if path.is_dir() else name if HUB.fullmatch(name) else None


def within(key: str, section: str) -> bool:
    """Whether a dotted key is a section of a recipe, or lies in it."""
    return key == section or key.startswith(f"{section}.")


class RecipePlan(Config):
    """A recipe of the comparison; in a plan, a plain string stands for `recipe` alone."""

    recipe: Name
    """A recipe's name, or a YAML file; or the same as `start`, which is then trained further by its own recipe."""
    start: Name | None = None
    """Source of the first weights: a run, a folder in the form of transformers, or a name on the Hub; left out: random
    weights, or the weights of `recipe` where that names such a source."""
    name: Name
    """The recipe's label in the report; left out: the recipe's name, or the last part of a path."""
    set: dict[str, Any] = Field(default={})
    """Overrides by dotted key, such as training.optimizer.lr: 1e-3."""
    search: bool = True
    """Whether the recipe's values are searched if the plan has a `search`."""

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

    @model_validator(mode="after")
    def _effective(self) -> Self:
        for key in self.set:
            for unused, reason in NO_EFFECT.items():
                if within(key, unused):
                    raise ValueError(f"set: {key} would have no effect: {reason}")
        return self

    def searched_anyway(self, searched: Iterable[str]) -> Iterator[str]:
        """The keys of `set` whose values a search of these keys replaces."""
        return (key for key in self.set if self.search and any(within(key, each) for each in searched))

    def resolved(self, where: str, folder: Path) -> Self:
        """The recipe's plan with absolute paths.

        Args:
            where: the key in the plan that an error message begins with.
            folder: the plan's folder, to which its paths are relative.

        Raises:
            UserError: the recipe's file is missing, or the source of its first weights.
        """
        from bakeoff.recipe_files import recipe_names

        sources: dict[str, str] = {}
        if self.start is not None:
            start = elsewhere(self.start, folder)
            if start is None:
                path = (folder / Path(self.start).expanduser()).resolve()
                raise UserError(f"{where}.start: there is no run or model {path}, and it is no name on the Hub")
            sources["start"] = start
        if self.recipe == self.start:
            sources["recipe"] = sources["start"]
        elif self.recipe.endswith(YAML):
            file = (folder / Path(self.recipe).expanduser()).resolve()
            if not file.exists():
                raise UserError(f"{where}.recipe: there is no file {file}")
            sources["recipe"] = str(file)
        # A recipe's name is a recipe, whatever folders there are; `./NAME` is the folder.
        elif self.recipe not in recipe_names() and (source := elsewhere(self.recipe, folder)) is not None:
            if self.start is not None:
                raise UserError(f"{where}: {self.recipe} has weights of its own; name a recipe, or leave start out")
            sources |= {"recipe": source, "start": source}
        return self.model_copy(update=sources)
