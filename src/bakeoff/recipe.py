"""A recipe: the tree of all parts' configs."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.formats.registry import InputConfig
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.legality import memory_refusal, refusal
from bakeoff.objectives.masking import MaskingConfig
from bakeoff.objectives.registry import OBJECTIVES, AnyObjectiveConfig
from bakeoff.optimization.course import batch_rows, evenly
from bakeoff.optimization.curriculum import curriculum_refusals, stage_at
from bakeoff.overrides import TAGS, set_keys
from bakeoff.plugins import load_plugins
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
        reasons = [reason for part in self.objective if (reason := refusal(part, self.model, self.input))]
        if (reason := memory_refusal(self.model, self.input)) is not None:
            reasons.append(reason)
        kinds = [part.kind for part in self.objective]
        reasons += [f"objective: {kind} is listed twice" for kind in sorted({k for k in kinds if kinds.count(k) > 1})]
        if self.input.pairs and self.model.embedding.segments == 1:
            reasons.append("model.embedding.segments: 1, but the rows have two; set it to 2, or to 0 for none")
        related = [part.kind for part in self.objective if part.relates_segments]
        if len(related) > 1:
            reasons.append(f"objective: {' and '.join(related)} both arrange the segments; keep one of them")
        rewriting = [part.kind for part in self.objective if part.rewrites]
        if rewriting and len(self.objective) > 1:
            reasons.append(f"objective: {rewriting[0]} makes its own source and target; it stands alone")
        if self.reads_prefix and len(self.objective) > 1:
            kind = next(part.kind for part in self.objective if part.reads_prefix)
            reasons.append(f"objective: {kind} shows tokens what another one would predict from; it stands alone")
        reasons += self._ungenerated(kinds)
        for part in self.objective:
            other = part.rows_left_for
            if other is not None and part.rows_left > 0 and other not in kinds:
                reasons.append(f"objective: {part.kind} leaves rows to {other}; add that, or set causal to 0")
            if other is not None and part.rows_left == 0 and other in kinds:
                reasons.append(f"objective: {part.kind} leaves no rows to {other}; set causal, to 0.0625 for example")
        reasons += curriculum_refusals(self.training.curriculum, kinds, self.input.length, self.input.continues)
        reasons += self._unfit_stages()
        reasons += self._unchanging_batches()
        reasons += self._uncountable(related)
        batch = self.training.batch
        if isinstance(batch, int) and batch % self.input.directions:
            reasons.append(
                f"training.batch: {batch} rows cannot be shared between two directions; give an even number, or set "
                "input.backwards to false"
            )
        warmup = self.training.schedule.warmup
        if warmup > 1 and self.training.budget.steps is None:
            reasons.append(f"training.schedule.warmup: {warmup:g} steps, but the budget has none; give a share")
        longest = self.model.longest_input
        if longest is not None and self.input.length > longest:
            reasons.append(f"input.length: {self.input.length} is more than model.embedding.length, {longest}")
        if reasons:
            raise ValueError("; ".join(reasons))
        return self

    def _ungenerated(self, kinds: Sequence[str]) -> list[str]:
        """The reasons why an objective with a generator cannot be trained with this recipe."""
        reasons = []
        for part in self.objective:
            learns = part.generator_learns
            if learns is None or refusal(part, self.model, self.input) is not None:
                continue
            if learns not in kinds:
                reasons.append(f"objective: {part.kind} replaces what {learns} has hidden; add {learns}")
            others = [each.kind for each in self.objective if each.kind not in (part.kind, learns)]
            taking = [kind for kind in others if not OBJECTIVES[kind].relates_segments]
            if taking:
                reasons.append(
                    f"objective: {part.kind} stands beside {learns} and one that relates segments, not {taking[0]}"
                )
        return reasons

    def _unfit_stages(self) -> list[str]:
        """The stages of the curriculum whose rows are too short for their format, as errors."""
        reasons = []
        for index, stage in enumerate(self.training.curriculum):
            where = f"training.curriculum.{index}.length"
            try:
                self.input.parse({**self.input.model_dump(), "length": stage.length or self.input.length}, where)
            except UserError as error:
                reasons.append(str(error).replace(f"{where}: length: ", f"{where}: "))
        return reasons

    def _unchanging_batches(self) -> list[str]:
        """The reasons why batches cannot change their size, where the recipe asks for that."""
        training = self.training
        keys = [f"curriculum.{index}.batch_factor" for index, each in enumerate(training.curriculum)]
        asked = [key for key, each in zip(keys, training.curriculum, strict=True) if each.batch_factor != 1]
        if training.first_batch != 1:
            asked.append("first_batch")
        if isinstance(training.batch, int) and self.input.directions == 1 and not self.input.continues:
            return []
        if not isinstance(training.batch, int):
            why = "a batch of so many tokens has one size; give training.batch as a number of rows"
        else:
            why = "rows that continue each other stay as many"
        return [f"training.{key}: {why}, or leave it out" for key in asked]

    def _uncountable(self, related: Sequence[str]) -> list[str]:
        """The reasons why batches cannot be counted in tokens, where the recipe asks for that."""
        batch, rows = self.training.batch, self.input.format
        if isinstance(batch, int):
            return []
        if not self.input.uneven:
            return [f"training.batch: rows of {rows} are all as long as input.length; give their number, not tokens"]
        if related:
            return [f"training.batch: {related[0]} changes the lengths of rows; give their number, not tokens"]
        if batch.tokens < self.input.length:
            return [f"training.batch.tokens: {batch.tokens} are fewer than one row may have, {self.input.length}"]
        return []

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
        keys += ["training.running_average"] if self.training.running_average else []
        masking = [part for part in self.objective if isinstance(part, MaskingConfig)]
        return keys + [f"{part.kind}'s first_rate" for part in masking if part.first_rate is not None]

    def idle(self) -> list[frozenset[str]]:
        """The objectives that are not trained in each of `stages()`."""
        return [*(stage.idle for stage in self.training.curriculum), frozenset()]

    def weights_at(self, step: int) -> dict[str, float]:
        """The weight of each objective in a step of a training whose budget is in steps."""
        training = self.training
        weights: dict[str, float] = {part.kind: part.weight for part in self.objective}
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

    def fitted(self, steps: int, changes: Mapping[str, Any] = MappingProxyType({})) -> "Recipe":
        """`changed` for a training of `steps`, its warm-up and a rate that follows the length fitted to them."""
        schedule = self.training.schedule.fitted(steps, self.training.budget.steps)
        return self.changed(
            {
                "training.budget": {"steps": steps},
                "training.schedule": schedule.model_dump(mode="json"),
                "training.optimizer": self.training.optimizer.fitted(steps).model_dump(mode="json"),
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
