"""The contract of a model family of another library: its config.json and its tensor names, in both directions."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.families.task_heads import CHOICES, SEQUENCE, HeadForm, NotSaid, TaskHead
from bakeoff.interop.links import Link
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.tasks.heads.writing_head import writing_owner
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.task_config import HeadClass
from bakeoff.tokenizer.tokenizer import Tokenizer


class Family(ABC):
    """A model family: one `model_type` of config.json, or several that differ in name alone.

    A recipe belongs to the family if `recipe(config(recipe))` is the same model again. Therefore `config` writes the
    sizes alone and need not refuse every feature that the family lacks.
    """

    model_types: ClassVar[tuple[str, ...]]
    """Values of `model_type` that are read; the first one is written."""
    prefix: ClassVar[str] = ""
    """Prefix of the body's tensors in a checkpoint with heads, such as `bert.`; a checkpoint of the body alone has the
    names without it."""
    wrapped: ClassVar[str] = ""
    """Prefix of all tensors but the head's in classes that hold the whole model under one attribute."""
    logits: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Names of an objective's logits in the output of their classes, by objective; the first that is present counts."""
    pad: ClassVar[int | None] = None
    """The id that the padding token must have; None: any."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of tokenizers (`TokenizerConfig.kind`) of the published models; they decide where several families can
    express a recipe."""
    yields_to: ClassVar[frozenset[str]] = frozenset()
    """Families that come before this one where both can express a recipe and its kind of tokenizer does not decide, by
    the first of their `model_types`; of two families that can express one recipe one yields to the other."""
    pooler: ClassVar[str] = "tanh"
    """Activation of the pooler in the family's task heads, see `FinetuneConfig.pooler`."""
    transforms: ClassVar[bool] = False
    """Whether the task heads have a linear layer, an activation and a norm before the last linear layer, see
    `FinetuneConfig.transform`."""
    separators: ClassVar[int] = 1
    """Number of separators between the texts of a pair, where the files of a tokenizer do not say it."""
    frames: ClassVar[bool] = True
    """Whether tokenizers put special tokens around a text as fine-tuning does, where their files do not say it."""

    @abstractmethod
    def recipe(self, config: ConfigReader, tensors: Collection[str]) -> dict[str, Any]:
        """The recipe of a config.json: values of `paper`, `model`, `input` and `objective`.

        Args:
            config: their config.json.
            tensors: names of the checkpoint's tensors, with the prefix; they tell which heads it has. Empty: unknown.

        Raises:
            UserError: the config has a value that Bakeoff does not support.
        """

    @abstractmethod
    def config(self, recipe: Recipe) -> dict[str, Any]:
        """The config.json of a recipe, without `vocab_size` and the ids of tokens, which come from the tokenizer.

        `architectures` names the class that has the heads of the recipe's objectives.

        Raises:
            NotSaid: the family cannot express the recipe.
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
            NotSaid: the family has no class with such a head.
        """
        raise NotSaid(f"it has no class for {form.ending}")

    def form(self, ending: HeadClass, recipe: Recipe, config: ConfigReader) -> HeadForm:
        """The head of the family's class whose name ends so: the inverse of `task`.

        Raises:
            NotSaid: Bakeoff has no such head.
        """
        of_rows = ending in (SEQUENCE, CHOICES)
        return HeadForm(ending, of_rows, "cls" if of_rows else natural_pooling(recipe), pooler=self.pooler)

    def writing(self, architecture: str, recipe: Recipe) -> TaskHead:
        """The head of a run that was fine-tuned to generate text: the head of pre-training, complete.

        Args:
            architecture: the class that holds the head.
            recipe: the run's.

        Raises:
            UserError: no objective of the recipe teaches its model to generate text.
        """
        prefix = f"heads.{writing_owner(recipe).kind}."
        links = [link for link in self.heads(recipe) if all(name.startswith(prefix) for name in link.ours)]
        renamed = [tuple(f"writer.{name.removeprefix(prefix)}" for name in link.ours) for link in links]
        return TaskHead(
            architecture,
            [link._replace(ours=names, optional="") for link, names in zip(links, renamed, strict=True)],
        )

    def remarks(self, recipe: Recipe) -> list[str]:
        """Sentences for the user about what an export of the recipe leaves out or changes."""
        return []

    def adapted(self, values: dict[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
        """The values of `recipe`, completed or changed where they depend on the tokenizer."""
        return values

    def tokens(self, recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
        """Token ids in config.json by key, besides those of padding, `[CLS]` and `[SEP]`."""
        return {}

    def links(self, recipe: Recipe) -> list[Link]:
        """All links of a pre-trained run."""
        return [*self.body(recipe), *self.heads(recipe)]

    def compared(self, module: PretrainingModel, hidden: Tensor, answers: Any) -> Iterator[tuple[str, Tensor, Tensor]]:
        """The name, our logits and their logits of each head, by which an export is compared.

        Args:
            module: the run's model with its heads.
            hidden: (B, T, D) hidden states of the run's model.
            answers: the output of their class with heads for the same rows.

        Yields:
            Logits of shape (B, T, V) for heads of tokens, (B, C) for heads of rows with C classes.
        """
        table = module.model.embedding.weight
        heads = {each.name: each.head for each in module.objectives}
        for name, keys in self.logits.items():
            theirs: Tensor | None = next((answers[key] for key in keys if key in answers), None)
            if name in heads and theirs is not None:
                yield name, heads[name].scores(hidden if theirs.dim() == 3 else hidden[:, 0], table), theirs
