"""What a family of models elsewhere says of itself: its configuration and its names, both ways."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.task_heads import OF_ROWS, HeadForm, NotSaid, TaskHead
from bakeoff.interop.links import Link
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.tasks.heads.heads import natural_pooling
from bakeoff.tokenizer.tokenizer import Tokenizer


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
    wrapped: ClassVar[str] = ""
    """How the names of all but the head begin in classes that hold the whole model below a name."""
    logits: ClassVar[Mapping[str, Sequence[str]]] = {}
    """For each objective the names that its logits have in what their classes give; the first that is there counts."""
    pad: ClassVar[int | None] = None
    """The id that its padding token has to have, if any."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of tokenizers (`TokenizerConfig.kind`) that its published models have; where several families can say a
    recipe, one whose kinds have the tokenizer's is taken."""
    pooler: ClassVar[str] = "tanh"
    """What the layer over a row's first position ends with in its heads, see `FinetuneConfig.pooler`."""
    separators: ClassVar[int] = 1
    """Separators that its tokenizers put between the texts of a pair, where their files do not say it."""
    frames: ClassVar[bool] = True
    """Its tokenizers put special tokens around a text as rows of fine-tuning have them, where their files do not say
    what they put."""

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

    def task(self, form: HeadForm, recipe: Recipe) -> TaskHead:
        """The class with a fine-tuned run's head, and the head's links.

        Raises:
            NotSaid: it has no such head.
        """
        raise NotSaid(f"it has no head for {form.kind}")

    def form(self, kind: str, recipe: Recipe, config: ConfigReader) -> HeadForm:
        """The head that its class for a kind of task has: the way back of `task`.

        Raises:
            NotSaid: nothing here is like it.
        """
        of_rows = kind in OF_ROWS
        return HeadForm(kind, of_rows, "cls" if of_rows else natural_pooling(recipe), pooler=self.pooler)

    def remarks(self, recipe: Recipe) -> list[str]:
        """What does not go along when such a recipe is exported, in words."""
        return []

    def adapted(self, values: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
        """The recipe's values, those changed that depend on the tokenizer."""
        return values

    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        """Keys of config.json that name tokens by their ids, beside padding, `[CLS]` and `[SEP]`."""
        return {}

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
        heads = {each.name: each.head for each in module.objectives}
        for name, keys in self.logits.items():
            theirs: Tensor | None = next((answers[key] for key in keys if key in answers), None)
            if name in heads and theirs is not None:
                yield name, heads[name].scores(hidden if theirs.dim() == 3 else hidden[:, 0], table), theirs
