"""What a recipe of a plan may have of its own: text, tokenizer, budget, another shape of its start, fine-tuning."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.models.layer_map import GrowBy
from bakeoff.optimization.budget import Budget
from bakeoff.overrides import within
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

AS_IT_IS = "0"
"""The budget of a recipe that is compared as it is, without a training."""

FROM_CHANCE = "random"
"""The start of a recipe that has a run's or a model's architecture, and random weights."""

VECTORS = "training.token_vectors"
"""The section of a recipe that says what a table of tokens begins with where no start has one."""


UNTIL_A_LOSS = {"held_out": "until_loss", "bits_per_byte": "until_bits_per_byte"}
"""The losses that a plan's budget may last until, with the plan's keys that they become."""


def known_budget(value: Any) -> Any:
    """A budget as it is, if it is one; what is no text at all is left to its field.

    Raises:
        ValueError: it is none, in words.
    """
    if isinstance(value, int | float):
        raise ValueError("give a unit and how many, such as tokens=5M, minutes=10 or steps=1000")
    if not isinstance(value, str):
        return value
    unit, _, amount = value.partition("=")
    if unit in UNTIL_A_LOSS or unit == "loss":
        key = unit if unit in UNTIL_A_LOSS else "held_out"
        raise ValueError(
            f"{value}: a plan's budget lasts until a loss as {{{key}: {amount or '3.2'}, at_most: steps=1000}}"
        )
    try:
        Budget.parse_text(value)
    except UserError as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    return value


class OwnSettings(Config):
    """What a recipe of a plan has in place of what the plan says for all."""

    corpus: Path | None = None
    """Another text to train on: a prepared corpus, or files of text, which are prepared with the plan's tokenizer."""
    tokenizer: TokenizerConfig | Path | None = None
    """Another tokenizer, for which the text is prepared anew from its files: settings, of which those left out are the
    corpus's (`{kind: unigram, size: 16000}`), or a tokenizer.json or a folder with one. A recipe with a start has that
    of the start. Bits per byte and tasks compare whatever the tokenizer, losses of tokens do not."""
    budget: str | None = None
    """Another budget than the plan's. 0: the run or model that `recipe` names is compared as it is, without a further
    training."""
    grow: int | None = Field(default=None, gt=0)
    """Number of layers of the recipe, which is deeper than its start; left out: as many as the recipe says."""
    grow_by: GrowBy = "repeat"
    """Order of the copied layers of a start that grows: repeat (1 2 1 2) or interleave (1 1 2 2)."""
    unshare: bool = False
    """Whether layers that share weights in the start get copies of their own, which then differ. For fine-tuning alone:
    `finetune: {unshare: true}`."""
    finetune: dict[str, Any] = Field(default={})
    """Settings of this recipe's fine-tunings, in place of those of the tasks."""

    @field_validator("budget", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            raise ValueError("the plan's budget alone lasts until a loss; give a recipe one such as steps=1000")
        if value == AS_IT_IS or (value == 0 and not isinstance(value, bool)):
            return AS_IT_IS
        unit, _, amount = value.partition("=") if isinstance(value, str) else ("", "", "")
        if unit in Budget.model_fields and amount.strip(" 0.") == "" and "0" in amount:
            raise ValueError(f"{value} is no training; give 0, and the recipe is compared as it is")
        return known_budget(value)

    @field_validator("finetune", mode="before")
    @classmethod
    def _settings_of_finetuning(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            try:
                FinetuneConfig.model_validate(dict(value))
            except ValidationError as error:
                raise ValueError(FinetuneConfig.mistakes(error.errors(), value)) from None
        return value

    @property
    def as_it_is(self) -> bool:
        """Whether the recipe is a run or a model that is compared without a further training."""
        return self.budget == AS_IT_IS

    def without_effect(self, changes: Mapping[str, Any], start: str | None, retokenized: bool) -> Iterator[str]:
        """The settings that would have no effect beside others, in words with their reasons.

        Args:
            changes: the recipe's overrides by dotted key.
            start: the source of the recipe's first weights; None or `FROM_CHANCE`: random weights.
            retokenized: whether `tokenizer` or an override asks for another tokenizer.
        """
        chance = start is None or start == FROM_CHANCE
        if self.as_it_is:
            given = {"corpus": self.corpus, "tokenizer": self.tokenizer, "grow": self.grow, "unshare": self.unshare}
            for key in (*(f"set: {key}" for key in changes), *(key for key, value in given.items() if value)):
                yield f"{key} would have no effect: with a budget of 0 the run is compared as it is"
        elif not chance:
            for key in (key for key, value in changes.items() if within(key, VECTORS) and value is not None):
                yield f"set: {key} would have no effect: the table of tokens is the start's"
            if retokenized:
                yield "tokenizer would have no effect: a start has its own, for which the text is prepared"
        if chance:
            for key, value in (("grow", self.grow), ("unshare", self.unshare)):
                if value:
                    instead = {"grow": "model.encoder.layers", "unshare": "model.encoder.share: none"}[key]
                    yield f"{key} would have no effect: it changes a start, and there is none; `set` {instead} instead"
        if "grow_by" in self.model_fields_set and chance:
            yield "grow_by would have no effect: there is no start that grows"
        for key in changes if self.grow is not None else ():
            if key.startswith("model.") and key.endswith(".layers"):
                yield f"set: {key} would have no effect: `grow` says how many layers there are"

    @model_validator(mode="after")
    def _some_settings(self) -> Self:
        if isinstance(self.tokenizer, TokenizerConfig) and not self.tokenizer.model_fields_set:
            raise ValueError("tokenizer: nothing given; give its kind, its size or lowercase")
        return self

    def own_finetuning(self, of_task: FinetuneConfig) -> FinetuneConfig:
        """The settings of the recipe's fine-tuning on a task that has some of its own for all recipes."""
        if not self.finetune:
            return of_task
        given = {**of_task.model_dump(mode="json", exclude_unset=True), **self.finetune}
        return FinetuneConfig.parse(given, "finetune")


def until_a_loss(values: Any) -> Any:
    """A plan's values whose budget lasts until a held-out loss, by the most that is spent, and the loss.

    Raises:
        ValueError: the budget is no such one.
    """
    if not isinstance(values, Mapping) or not isinstance(budget := values.get("budget"), Mapping):
        return values
    if len(budget) == 1 and {*budget} <= {*Budget.model_fields}:
        ((unit, amount),) = budget.items()
        raise ValueError(f"budget: in a plan it is a text: {unit}={amount}")
    asked = [key for key in UNTIL_A_LOSS if key in budget]
    if len(asked) != 1 or {*budget} != {*asked, "at_most"} or {*UNTIL_A_LOSS.values()} & {*values}:
        raise ValueError(
            "budget: give a text such as tokens=5M, or {held_out: 3.2, at_most: steps=1000}, or bits_per_byte in place "
            "of held_out; both of them and no other"
        )
    (key,) = asked
    if isinstance(loss := budget[key], bool) or not isinstance(loss, int | float) or loss <= 0:
        raise ValueError(f"budget.{key}: a loss above zero is wanted, not {loss!r}")
    if not isinstance(budget["at_most"], str):
        raise ValueError(f"budget.at_most: a budget such as steps=1000 is wanted, not {budget['at_most']!r}")
    return {**values, "budget": budget["at_most"], UNTIL_A_LOSS[key]: loss}
