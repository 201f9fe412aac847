"""The head with which a model has learnt to write, which fine-tuning trains further."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor
from typing_extensions import override

from bakeoff.display.wording import listed
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.generation.beam_search import Hypothesis
from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.generate import never_written
from bakeoff.generation.generator import Generator
from bakeoff.generation.writer import Writer
from bakeoff.objectives.objective import ObjectiveConfig
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe import Recipe
from bakeoff.row import Row
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.rows.writing import WritingBatch
from bakeoff.tokenizer.tokenizer import Tokenizer


def require_writing(recipe: Recipe) -> ObjectiveConfig:
    """The objective by which a recipe's model learns to write.

    Raises:
        UserError: the recipe has no such objective.
    """
    objectives: Sequence[ObjectiveConfig] = recipe.objective
    objective = next((part for part in objectives if part.generates), None)
    if objective is None:
        able = [kind for kind, config in OBJECTIVES.items() if config.generates]
        raise UserError(
            f"{recipe.name}: a model that learns {listed([part.kind for part in objectives], 'and')} cannot write "
            f"targets; that needs one with an encoder and a decoder, or a decoder alone, and {listed(able, 'or')}"
        )
    return objective


class WritingHead(HeadedModel):
    """The output layer of pre-training, with or without the token embedding as its weights."""

    def __init__(self, recipe: Recipe, vocabulary: int) -> None:
        """Make the model and the head with fresh weights.

        Raises:
            UserError: the recipe's model does not learn to write.
        """
        super().__init__(recipe, vocabulary)
        self.owner = writing_owner(recipe)
        self.writer = self.owner.build(recipe.model, vocabulary + recipe.extra_tokens).head
        self.reads_prefix = recipe.reads_prefix
        self.marks = range(vocabulary, vocabulary + recipe.extra_tokens)
        """Ids of the tokens that stood for gaps in pre-training."""

    def forward(self, batch: WritingBatch) -> Tensor:
        """(N, V) scores of the tokens of all targets of a batch, one target after the other."""
        prefix = batch.prompt if self.reads_prefix else None
        hidden, _ = self.model(Row(batch.ids, padding_mask=batch.padding_mask, source=batch.source, prefix=prefix))
        rows = hidden.flatten(0, 1).index_select(0, batch.positions)
        return self.writer.scores(rows, self.model.embedding.weight)

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        sources: Sequence[Sequence[int]] | None,
        tokenizer: Tokenizer,
        config: GenerationConfig,
        processes: Processes = ALONE,
    ) -> list[Hypothesis]:
        """The best target for each prompt; see `Generator.search`."""
        banned = [*never_written(tokenizer), *self.marks]
        generator = Generator(Writer(self.model, self.writer, self.reads_prefix), tokenizer.separator, banned)
        return generator.search(prompts, config, sources, processes)

    @override
    def pretrained(self, names: Collection[str], recipe: Recipe) -> dict[str, str]:
        """The names for all tensors of the head, since pre-training has made the whole head."""
        prefix = f"heads.{writing_owner(recipe).kind}."
        return {f"writer.{name.removeprefix(prefix)}": name for name in names if name.startswith(prefix)}


def writing_owner(recipe: Recipe) -> ObjectiveConfig:
    """The objective whose head writes: the writing objective, or the one whose head it shares.

    Raises:
        UserError: the recipe's model does not learn to write.
    """
    writing = require_writing(recipe)
    objectives: Sequence[ObjectiveConfig] = recipe.objective
    return next((part for part in objectives if part.kind == writing.head_of), writing)
