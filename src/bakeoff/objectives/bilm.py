"""Bidirectional language modelling: each token is predicted from those before it, and again from those after it."""

from typing import Literal

import numpy as np

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.clm import LanguageModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Targets


class BidirectionalLanguageModelConfig(LanguageModelConfig):
    """ELMo's objective (Peters et al. 2018, arXiv:1802.05365, section 3.1), one softmax for both directions.

    sum_t log p(x[t] | x[1], ..., x[t-1]) + log p(x[t] | x[t+1], ..., x[T]), here as a mean over both sums' terms.
    """

    kind: Literal["bilm"] = "bilm"
    """The objective's name."""

    def build(self, model: ModelConfig, vocabulary: int) -> "BidirectionalLanguageModel":
        """The objective with a fresh head."""
        return BidirectionalLanguageModel(self._head(model, vocabulary))


class BidirectionalLanguageModel:
    """Forwards every position predicts the token behind it, backwards the one before it; N examples, T length."""

    name = "bilm"

    def __init__(self, head: Head) -> None:
        self.head: Head = head
        self.targets_per_token = 2.0

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Of all places but padding both neighbours.

        Backwards the first place of a row or a document has none: what stands before it is not in the row, or belongs
        to another document.
        """
        assert examples.following is not None
        ids, documents = examples.ids, examples.documents
        labels = np.stack([examples.following, np.roll(ids, 1, axis=1)], axis=-1)  # (N, T, 2)
        predicted = np.stack([documents > 0, documents > 0], axis=-1)
        predicted[:, 0, 1] = False
        predicted[:, 1:, 1] &= documents[:, 1:] == documents[:, :-1]
        rows = np.flatnonzero(predicted)
        return Targets(rows, labels.ravel()[rows], directions=2)
