"""Permutation language modelling: tokens are predicted in a random order, each from those before it in the order."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, tied_head
from bakeoff.objectives.objective import Scoring, Targets, TokenObjectiveConfig
from bakeoff.objectives.refusals import sees_both_sides
from bakeoff.objectives.target_choice import TargetChoice, free_sources
from bakeoff.randomness.draws import Draws
from bakeoff.row import Queries
from bakeoff.tokenizer.tokenizer import Tokenizer


class PermutationConfig(TokenObjectiveConfig):
    """XLNet's objective (Yang et al. 2019, arXiv:1906.08237, sections 2.2 and 2.3), with partial prediction."""

    kind: Literal["permutation"] = "permutation"
    """The objective's name."""
    title: ClassVar[str] = "Tokens in a random order (permutation)"
    refused: ClassVar[Mapping[str, str]] = {
        **sees_both_sides("permutation"),
        "mixers without a second stream": "permutation needs mixers that attend over two streams: "
        "relative_attention can, no other, and not where model.second_stream is false",
        "absolute positions": "permutation has queries, to which the embedding would add no position; set "
        "positions to none",
    }
    bounded_by_frequencies: ClassVar[bool] = True
    rate: float = Field(default=1 / 6, gt=0, lt=1)
    """Share of a row's tokens that are predicted, the last of the order; 1 / K in the paper."""
    ngram: int = Field(default=5, ge=1, le=1000)
    """Targets are runs of up to this many words, and n words have a probability proportional to 1/n; 1: single
    tokens.
    """

    span_end: Literal["word", "token"] = "word"
    """The end of a run: at the end of a word; or (token) n tokens after the start of its first word, in place of n
    words, as in the published code, which looks for the end at the wrong place.
    """
    bias: bool = False
    """Each token has a bias in its score, as in the published code."""
    scoring: ClassVar[Scoring | None] = "query"

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "Permutation":
        return Permutation(self, model, vocabulary)


class Permutation:
    """Chooses targets and their order; N examples, T length, P targets of a row.

    Tokens that are no targets come first in the order and are seen by all; a target is seen by the later targets.
    """

    name = "permutation"

    def __init__(self, config: PermutationConfig, model: ModelConfig, vocabulary: int) -> None:
        self.head: Head = tied_head(model, vocabulary, config.bias)
        self.choice = TargetChoice(config.rate, config.ngram, span_end=config.span_end)
        self.targets_per_token = config.rate
        self.queries_per_token = config.rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Append a query for each target to every row, padded to the largest number of targets in a row."""
        chosen = self.choice.choose(free_sources(examples, tokenizer), split, draws, examples.row.backwards)
        examples.take(chosen)
        count, length = chosen.shape
        wanted = chosen.sum(1)
        most = int(wanted.max(initial=0))
        score = np.where(chosen, draws.words("factorisation order", length).astype(np.int64), np.iinfo(np.int64).max)
        positions = np.argsort(score, axis=1, kind="stable")[:, :most]  # targets in their order, then anything
        padding_mask = np.arange(most) < wanted[:, None]
        row, column = np.nonzero(padding_mask)
        # Rank 0 for what is no target. A target's rows see what has a lower rank, all others what has rank 0; in few
        # bits, because the comparisons are most of the work.
        rank = np.zeros((count, length), np.min_scalar_type(length))
        rank[row, positions[row, column]] = column + 1
        orders = np.where(padding_mask, np.arange(most) + 1, 0)  # of the queries, 0 for those that only fill the row
        below = np.concatenate([np.maximum(rank, 1), orders], axis=1).astype(rank.dtype)
        queries: Queries[NDArray[Any]] = Queries(
            np.where(padding_mask, positions, 0), rank[:, None, :] < below[:, :, None]
        )
        if examples.reuse:
            _part_at(examples.reuse, queries.visible, queries.positions)
        examples.row = examples.row._replace(queries=queries)
        labels = examples.row.ids[row, positions[row, column]]
        return Targets(row * (length + most) + length + column, labels, length=length + most)


def _part_at(reuse: int, visible: NDArray[np.bool_], queries: NDArray[np.int64]) -> None:
    """Separate the rows at position `reuse`: earlier tokens see none of the later ones, later tokens see all before.

    Each of the two parts then has an order of its own, and the first part comes before the second (Yang et al. 2019,
    section 2.4: the remembered states belong to a row's first part).

    Args:
        reuse: the position at which the second part begins.
        visible: (N, T + P, T), changed in place.
        queries: (N, P) the positions of the queries.
    """
    length = visible.shape[2]
    visible[:, :reuse, reuse:] = False
    visible[:, reuse:length, :reuse] = True
    of_queries = visible[:, length:]
    first = (queries < reuse)[..., None]
    of_queries[..., reuse:] &= ~first
    of_queries[..., :reuse] |= ~first
