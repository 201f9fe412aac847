"""Word structure: runs of three tokens are shuffled, and the original order is predicted (StructBERT)."""

from collections.abc import Mapping
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, transformed_head
from bakeoff.objectives.objective import Targets, TokenObjectiveConfig
from bakeoff.objectives.refusals import sees_both_sides
from bakeoff.objectives.target_choice import free_sources
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

RUN = 3
"""K, the number of tokens that are shuffled together; the paper uses 3 alone."""

ORDERS = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])


class WordStructureConfig(TokenObjectiveConfig):
    """StructBERT's word structural objective (Wang et al. 2020, arXiv:1908.04577, section 2.2).

    argmax log P(pos_1 = t_1, pos_2 = t_2, pos_3 = t_3 | the three tokens in a random order, all else)
    """

    kind: Literal["word_structure"] = "word_structure"
    """The objective's name."""
    title: ClassVar[str] = "Shuffled tokens (word_structure)"
    refused: ClassVar[Mapping[str, str]] = sees_both_sides("word_structure")
    rate: float = Field(default=0.05, gt=0, le=1 / RUN)
    """Number of shuffled runs of three as a share of the tokens that no other objective has taken."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """Activation in the head. It has no effect beside `mlm`, whose head is used then."""
    moves: ClassVar[bool] = True
    targets_together: ClassVar[int] = RUN
    head_of: ClassVar[str | None] = "mlm"

    @property
    def head_activation(self) -> str | None:
        """The activation of the transform in front of the head's table."""
        return self.activation

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "WordStructure":
        return WordStructure(self, model, vocabulary)


class WordStructure:
    """Shuffles runs of tokens; N examples, T length, C candidates of a row."""

    name = "word_structure"

    def __init__(self, config: WordStructureConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = transformed_head(model, vocabulary, config.activation)
        self.targets_per_token = RUN * config.rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Shuffle runs of the examples in place; the labels are the originals.

        All six orders are equally likely, so that a sixth of the runs stay as they are.
        """
        sources = free_sources(examples, tokenizer)
        starts = self.choose(sources, draws, examples.row.backwards)
        row, start = np.nonzero(starts)
        positions = start[:, None] + np.arange(RUN)  # (n, 3)
        order = ORDERS[(draws.uniform("run order", sources.shape[1])[row, start] * len(ORDERS)).astype(np.int64)]
        original = examples.row.ids[row[:, None], positions]
        examples.row.ids[row[:, None], positions] = np.take_along_axis(original, order, 1)
        shuffled = np.zeros(sources.shape, np.bool_)
        shuffled[row[:, None], positions] = True
        examples.take(shuffled)
        return Targets((row[:, None] * sources.shape[1] + positions).ravel(), original.ravel())

    def choose(
        self, sources: NDArray[np.int64], draws: Draws, backwards: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """(N, T) True where a run begins, from (N, T) positions in the text, -1 for tokens that are not free.

        (N,) `backwards` is True for rows that read the text from its end.

        All runs of a row begin at positions with the same remainder modulo three, drawn for each row. Runs therefore do
        not overlap, and every run of the text is equally likely.
        """
        length = sources.shape[1]
        free = sources >= 0
        wanted = np.rint(free.sum(1) * self.config.rate).astype(np.int64)
        onwards = 1 if backwards is None else np.where(backwards, -1, 1)[:, None]
        joined = free[:, 1:] & (sources[:, 1:] == sources[:, :-1] + onwards)  # with the token before it
        whole = np.zeros_like(free)
        whole[:, : length - 2] = joined[:, :-1] & joined[:, 1:] & free[:, : length - 2]
        phase = draws.integers("run phase", np.full(len(sources), RUN))
        candidates = whole & (np.arange(length) % RUN == phase[:, None])
        score = np.where(candidates, draws.words("run", length).astype(np.int64), np.iinfo(np.int64).max)
        order = np.argsort(score, axis=1, kind="stable")
        chosen = np.zeros_like(free)
        np.put_along_axis(chosen, order, np.arange(length) < wanted[:, None], axis=1)
        return cast(NDArray[np.bool_], chosen & candidates)
