"""What a family of models elsewhere says of itself: its configuration and its names, both ways."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.links import Link
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe


class NotSaid(Exception):
    """A family has no way to say what a recipe is; the text is the reason, in words."""


class Family(ABC):
    """One `model_type` of config.json, or several that differ in name alone.

    A recipe is of the family if the recipe of its `config` is the same model again, so that `config` says the sizes
    and need not look for what the family does not have.
    """

    model_types: ClassVar[tuple[str, ...]]
    """Values of model_type that it reads; the first one is written."""
    prefix: ClassVar[str] = ""
    """How the names of the body's tensors begin where heads stand beside it, such as `bert.`; a file of the body
    alone has its names without it."""
    logits: ClassVar[Mapping[str, Sequence[str]]] = {}
    """For each objective the names that its logits have in what their classes give; the first that is there counts."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of tokenizers (`TokenizerConfig.kind`) that its published models have; where several families can say a
    recipe, one whose kinds have the tokenizer's is taken."""

    @abstractmethod
    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """Values of `model`, `input` and `objective` of the recipe, and `paper`.

        Args:
            config: their config.json.
            tensors: names of the tensors that are there, with the prefix: they tell which heads there are.

        Raises:
            UserError: the config says something that Bakeoff has nothing like.
        """

    @abstractmethod
    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a recipe, without `vocab_size` and ids of tokens, which the tokenizer says.

        `architectures` names the class that has the heads of the recipe's objectives.

        Raises:
            NotSaid: the recipe has something that the family has not.
        """

    @abstractmethod
    def body(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the model without heads (`model.` in a run)."""

    @abstractmethod
    def heads(self, recipe: Recipe) -> Iterator[Link]:
        """Links of the heads of the recipe's objectives (`heads.NAME.` in a run)."""

    def links(self, recipe: Recipe) -> list[Link]:
        """All links of a pre-trained run."""
        return [*self.body(recipe), *self.heads(recipe)]

    def compared(self, module: PretrainingModel, hidden: Tensor, answers: Any) -> Iterator[tuple[str, Tensor, Tensor]]:
        """Name, our numbers and theirs for each head: what an export is compared by.

        Args:
            module: of the run.
            hidden: (B, T, D) its hidden states.
            answers: what their class with the heads gives for the same rows.

        Yields:
            Numbers of shape (B, T, V) or (B, C).
        """
        table = module.model.embedding.table
        for name, keys in self.logits.items():
            theirs = next((answers[key] for key in keys if key in answers), None)
            if name in module.heads and theirs is not None:
                rows = hidden if theirs.dim() == 3 else hidden[:, 0]
                yield name, module.heads[name].scores(rows, table), theirs
