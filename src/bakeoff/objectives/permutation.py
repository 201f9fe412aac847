"""Permutation language modelling: tokens are predicted in a random order, each from those before it in the order."""

from typing import Literal

import numpy as np
from pydantic import Field

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import Head, table_head
from bakeoff.objectives.objective import ObjectiveConfig, Targets
from bakeoff.objectives.target_choice import TargetChoice, free_sources


class PermutationConfig(ObjectiveConfig):
    """XLNet's objective (Yang et al. 2019, arXiv:1906.08237, sections 2.2 and 2.3), with partial prediction."""

    kind: Literal["permutation"] = "permutation"
    """The objective's name."""
    rate: float = Field(default=1 / 6, gt=0, lt=1)
    """Share of a row's tokens that are predicted, the last of the order: 1 / K of the paper."""
    ngram: int = Field(default=5, ge=1)
    """Targets are runs of up to this many words, n words with probability proportional to 1/n; 1: single tokens."""

    def build(self, model: ModelConfig, vocabulary: int) -> "Permutation":
        """The objective with a fresh head."""
        return Permutation(self, model, vocabulary)


class Permutation:
    """Chooses targets and their order; N examples, T length, P targets of a row.

    What is no target is read by everyone and first of all; a target is read by the targets behind it in the order.
    """

    name = "permutation"

    def __init__(self, config: PermutationConfig, model: ModelConfig, vocabulary: int) -> None:
        self.head: Head = table_head(model, vocabulary)
        self.choice = TargetChoice(config.rate, config.ngram)
        self.targets_per_token = config.rate
        self.queries_per_token = config.rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Append a query for each target to every row; padded to the row with most targets."""
        chosen = self.choice.choose(free_sources(examples, tokenizer), split, draws)
        examples.take(chosen)
        count, length = chosen.shape
        wanted = chosen.sum(1)
        most = int(wanted.max(initial=0))
        score = np.where(chosen, draws.words("factorisation order", length).astype(np.int64), np.iinfo(np.int64).max)
        positions = np.argsort(score, axis=1, kind="stable")[:, :most]  # targets in their order, then anything
        real = np.arange(most) < wanted[:, None]
        # Rank 0 for what is no target; a row sees what has a lower rank than itself.
        rank = np.zeros((count, length), np.int64)
        rows = np.arange(count)[:, None]
        rank[np.broadcast_to(rows, positions.shape)[real], positions[real]] = np.nonzero(real)[1] + 1
        content = (rank[:, None, :] < rank[:, :, None]) | (rank[:, None, :] == 0)
        queries = (rank[:, None, :] < rank[rows, positions][:, :, None]) & real[:, :, None]
        examples.query_positions = np.where(real, positions, 0)
        examples.visible = np.concatenate([content, queries], axis=1)
        places = np.nonzero(real)
        labels = examples.ids[places[0], positions[places]]
        return Targets(places[0] * (length + most) + length + places[1], labels, length=length + most)
