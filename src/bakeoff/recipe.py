"""A recipe: the tree of all parts' configs."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.formats.registry import InputConfig
from bakeoff.models.dropouts import with_dropout
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.masking import MaskingConfig
from bakeoff.objectives.registry import AnyObjectiveConfig
from bakeoff.optimization.course import batch_rows, evenly
from bakeoff.optimization.curriculum import stage_at
from bakeoff.overrides import TAGS, set_keys
from bakeoff.plugins import load_plugins
from bakeoff.recipe_refusals import recipe_refusals
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training_config import TrainingConfig
from bakeoff.yaml_files import dump_yaml


class Published(Config):
    """The size of a model in its paper."""

    parameters: int = Field(gt=0)
    """Number of parameters in the paper; where that number is wrong or very round, in the paper's code or weights."""
    vocabulary: int = Field(gt=0)
    """Size of the vocabulary with which the parameters were counted."""
    differs: str = ""
    """The reason for another number of parameters here, where it differs by more than 1.5 %."""


LARGEST_SIZE = 2**24
"""The largest width, length or window, and the largest of all other whole numbers of a model."""
MOST = dict.fromkeys(("layers", "repeat", "groups", "convolutions"), 10_000)
"""The largest numbers of parts that are made one by one, such as layers."""


def _whole_numbers(values: Any, key: str) -> Iterator[tuple[str, int]]:
    """Every whole number of a tree of plain data, with its dotted key."""
    if isinstance(values, Mapping | list):
        for name, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            yield from _whole_numbers(value, f"{key}.{name}")
    elif isinstance(values, int):
        yield key, values


class Recipe(Config):
    """Everything that defines a pre-training but the text and the seed."""

    read_before: ClassVar[tuple[str, ...]] = ("extends",)

    name: str
    """The recipe's name: that of its file, where the file gives none."""
    paper: str = ""
    """The publication that the recipe reproduces, or the reason for it."""
    published: Published | None = None
    """The paper's size, for comparison; a recipe that extends this one and changes the model does not take it over."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """The tokenizer that `prepare --recipe` trains. A run uses that of its corpus, and its recipe then names it."""
    model: ModelConfig
    """Embedding, encoder or decoder."""
    input: InputConfig
    """The format of rows."""
    objective: list[AnyObjectiveConfig] = Field(min_length=1)
    """The objectives, whose losses are added with their weights."""
    training: TrainingConfig
    """Batch, optimizer, schedule, budget."""

    @model_validator(mode="before")
    @classmethod
    def _in_bounds(cls, values: Any) -> Any:
        """Refuse sizes that no machine can hold, before anything is built."""
        if isinstance(values, Mapping):
            for part in ("model", "input", "objective"):
                for key, size in _whole_numbers(values.get(part), part):
                    if size > MOST.get(key.rpartition(".")[2], LARGEST_SIZE):
                        raise ValueError(f"{key}: {size} is too large")
        return values

    @model_validator(mode="after")
    def _legal(self) -> Self:
        reasons = recipe_refusals(self)
        if reasons:
            raise ValueError("; ".join(reasons))
        return self

    def __reduce__(self) -> Any:
        # As values, so that a process which unpickles a recipe loads the plugins before it needs their classes.
        return _unpickled, (self.model_dump(mode="json"),)

    def stages(self) -> "list[Recipe]":
        """A recipe for each stage of the curriculum, with the rows of that stage, and one for what follows them all."""
        no_stages: dict[str, Any] = {"training.curriculum": []}
        recipes = []
        for stage in self.training.curriculum:
            changes = {**no_stages, "input.length": stage.length or self.input.length}
            if isinstance(batch := self.training.batch, int):
                changes["training.batch"] = max(1, round(stage.batch_factor * batch))
            for index, part in enumerate(self.objective):
                settings = {**stage.settings.get(part.kind, {}), "weight": stage.weights.get(part.kind, part.weight)}
                changes |= {f"objective.{index}.{key}": value for key, value in settings.items()}
            if stage.dropout is not None:
                changes["model"] = with_dropout(self.model, stage.dropout).model_dump(mode="json")
            recipes.append(self.changed(changes))
        return [*recipes, self.changed(no_stages)]

    def at(self, progress: float) -> "Recipe":
        """The recipe as it is after that share of the training, with its changing values fixed."""
        changes: dict[str, Any] = {}
        if self.training.first_batch != 1:
            assert isinstance(self.training.batch, int)
            rows = int(batch_rows(self.training.batch, self.training.first_batch, progress))
            changes = {"training.batch": rows, "training.first_batch": 1.0}
        for index, part in enumerate(self.objective):
            if isinstance(part, MaskingConfig) and part.first_rate is not None:
                rate = evenly(part.first_rate, part.rate, progress)
                changes |= {f"objective.{index}.rate": rate, f"objective.{index}.first_rate": None}
        return self.changed(changes) if changes else self

    @property
    def moves_with_the_steps(self) -> list[str]:
        """The keys whose values depend on the share of steps done; another number of steps would move these values."""
        keys = ["training.curriculum"] if self.training.curriculum else []
        keys += ["training.first_batch"] if self.training.first_batch != 1 else []
        keys += ["training.average"] if self.training.average is not None else []
        masking = [part for part in self.objective if isinstance(part, MaskingConfig)]
        return keys + [f"{part.kind}'s first_rate" for part in masking if part.first_rate is not None]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each objective by its kind, in what follows the stages of the curriculum."""
        return {part.kind: part.weight for part in self.objective}

    @property
    def idle(self) -> frozenset[str]:
        """The kinds of the objectives that are not trained in what follows the stages of the curriculum."""
        return frozenset(kind for kind, weight in self.weights.items() if weight == 0)

    @property
    def trained(self) -> list[AnyObjectiveConfig]:
        """The objectives that are trained in what follows the stages of the curriculum."""
        return [part for part in self.objective if part.weight > 0]

    @property
    def trained_first(self) -> list[AnyObjectiveConfig]:
        """All objectives, those that are trained until the end before those that only stages train."""
        return sorted(self.objective, key=lambda part: part.weight == 0)

    def weights_at(self, step: int) -> dict[str, float]:
        """The weight of each objective in a step of a training whose budget is in steps."""
        training, weights = self.training, self.weights
        stage = stage_at(training.curriculum, step, training.budget.steps or 1)
        return weights if stage == len(training.curriculum) else weights | training.curriculum[stage].weights

    @property
    def extra_tokens(self) -> int:
        """Rows of the token table beyond the tokenizer's vocabulary, for the marks that objectives need."""
        return max(part.extra_tokens for part in self.objective)

    @property
    def reads_prefix(self) -> bool:
        """Whether the model learns to see the beginning of a row from both sides and the rest causally."""
        return any(part.reads_prefix for part in self.objective)

    @property
    def reads_both_sides(self) -> bool:
        """Whether the model can see a whole text from both sides although its stack is causal."""
        return self.reads_prefix or any(part.reads_rows for part in self.objective)

    def to_yaml(self) -> str:
        """The complete recipe, every default written out."""
        values = _kind_first(self.model_dump(mode="json"))
        values["training"]["budget"] = self.training.budget.model_dump(exclude_none=True)
        return dump_yaml(values)

    def changed(self, changes: Mapping[str, Any]) -> "Recipe":
        """The recipe with other values at some dotted keys, checked again."""
        values = self.model_dump(mode="json")
        set_keys(values, changes, Recipe, self.name)
        if changes_the_model(changes):
            values["published"] = None
        return Recipe.parse(values, self.name)

    @property
    def reproduces(self) -> bool:
        """Whether the recipe reproduces a publication; the package's other recipes say `our own` instead."""
        return bool(self.paper) and not self.paper.startswith("our own")

    def with_tokenizer(self, tokenizer: TokenizerConfig) -> "Recipe":
        """The recipe as it is trained on a corpus with that tokenizer."""
        return self.changed({"tokenizer": tokenizer.model_dump()})

    def fitted(
        self,
        steps: int,
        changes: Mapping[str, Any] = MappingProxyType({}),
        steps_a_pass: float | None = None,
        before: int = 0,
    ) -> "Recipe":
        """`changed` for a training of `steps`, with the warm-up, and a rate and a decay that follow the length, fitted.

        Args:
            steps: the steps of the training.
            changes: other values at some dotted keys.
            steps_a_pass: the steps of a pass over all texts of the weights; None: the training is one pass.
            before: the steps that have trained the first weights.
        """
        planned = self.training.budget.steps
        schedules = {
            f"training.{key}": schedule.fitted(steps, planned).model_dump(mode="json")
            for key, schedule in self.training.schedules.items()
        }
        return self.changed(
            {
                "training.budget": {"steps": steps},
                **schedules,
                "training.optimizer": self.training.optimizer.fitted(steps, steps_a_pass, before).model_dump(
                    mode="json"
                ),
                **changes,
            }
        )


def _unpickled(values: dict[str, Any]) -> Recipe:
    load_plugins()
    return Recipe.model_validate(values)


def changes_the_model(changes: Mapping[str, Any]) -> bool:
    """Whether any of the keys, dotted or not, lies in the model, whose published size then no longer applies."""
    return any(key.partition(".")[0] == "model" for key in changes)


def _kind_first(node: Any) -> Any:
    """The tree with `kind` as the first key of each mapping."""
    if isinstance(node, list):
        return [_kind_first(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _kind_first(node[key]) for key in sorted(node, key=lambda key: key not in TAGS)}
