"""How does the second segment of a pair relate to the first: next-sentence and sentence-order prediction."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.errors import UserError
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import SentenceHead
from bakeoff.objectives.objective import ObjectiveConfig, Targets, refuse_unless_bidirectional
from bakeoff.objectives.segment_pair import Pairs


class SegmentRelationConfig(ObjectiveConfig):
    """What the objectives over segment pairs have in common."""

    kind: str
    """The objective's name."""
    relates_segments: ClassVar[bool] = True
    token_targets: ClassVar[bool] = False

    def refusal(self, model: ModelConfig, format: str) -> str | None:
        """Why this objective cannot train this model on this format, or None."""
        if format != "segment_pair":
            return f"{self.kind} needs two segments, but input.format is {format}; use segment_pair"
        return refuse_unless_bidirectional(self.kind, model)


class NextSentenceConfig(SegmentRelationConfig):
    """Next-sentence prediction of Devlin et al. 2019: does B follow A (0), or come from another document (1)?"""

    kind: Literal["nsp"] = "nsp"
    """The objective's name."""

    def build(self, model: ModelConfig, vocabulary: int) -> "NextSentence":
        """The objective with a fresh head."""
        return NextSentence(self.kind, model)


class SentenceOrderConfig(SegmentRelationConfig):
    """Sentence-order prediction of Lan et al. 2020: do the segments stand in their order (0), or swapped (1)?"""

    kind: Literal["sop"] = "sop"
    """The objective's name."""

    def build(self, model: ModelConfig, vocabulary: int) -> "SentenceOrder":
        """The objective with a fresh head."""
        return SentenceOrder(self.kind, model)


class SegmentRelation:
    """Predicts the label of each pair from the hidden state of its first position."""

    def __init__(self, name: str, model: ModelConfig) -> None:
        self.name = name
        self.head = SentenceHead(model.stack.width, classes=2)
        self.targets_per_token = 0.0  # one a row: nothing beside the tokens

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """The first place of every row, and the pair's label."""
        assert examples.relation is not None
        return Targets(np.arange(len(examples.ids)) * examples.ids.shape[1], examples.relation)


class NextSentence(SegmentRelation):
    """Half of the second segments are replaced by text from another document."""

    def arrange(self, pairs: Pairs, split: Split, draws: Draws) -> tuple[Pairs, NDArray[np.int64]]:
        """Replace with probability 1/2, by text from a sentence's start in another document, at most as long.

        Raises:
            UserError: the split has one document, so that there is no other.
        """
        documents, sentences = np.asarray(split.documents), np.asarray(split.sentences)
        count = len(documents) - 1
        if count < 2:
            raise UserError(
                "nsp takes its negatives from other documents, but the corpus has a single document in one of its "
                "splits; prepare it with --document-per-line or --document-separator, or use sop"
            )
        labels = (draws.uniform("is next", 1)[:, 0] < 0.5).astype(np.int64)
        own = np.searchsorted(documents, pairs.first, side="right") - 1
        other = draws.integers("document", np.full(len(own), count - 1))
        other += other >= own
        first = np.searchsorted(sentences, documents[other])
        choices = np.searchsorted(sentences, documents[other + 1]) - first
        start = sentences[first + draws.integers("sentence", choices)]
        length = np.minimum(pairs.second_length, documents[other + 1] - start)
        negative = labels == 1
        return Pairs(
            pairs.first,
            pairs.first_length,
            np.where(negative, start, pairs.second),
            np.where(negative, length, pairs.second_length),
        ), labels


class SentenceOrder(SegmentRelation):
    """Half of the pairs are swapped."""

    def arrange(self, pairs: Pairs, split: Split, draws: Draws) -> tuple[Pairs, NDArray[np.int64]]:
        """Swap with probability 1/2."""
        labels = (draws.uniform("swapped", 1)[:, 0] < 0.5).astype(np.int64)
        swapped = labels == 1
        return Pairs(
            np.where(swapped, pairs.second, pairs.first),
            np.where(swapped, pairs.second_length, pairs.first_length),
            np.where(swapped, pairs.first, pairs.second),
            np.where(swapped, pairs.first_length, pairs.second_length),
        ), labels
