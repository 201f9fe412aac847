"""Bidirectional language modelling: each token is predicted from those before it, and again from those after it."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.clm import LanguageModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.refusals import predicts_all, reads_running_text, starts_anew
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class BidirectionalLanguageModelConfig(LanguageModelConfig):
    """ELMo's objective (Peters et al. 2018, arXiv:1802.05365, section 3.1), one softmax for both directions.

    sum_t log p(x[t] | x[1], ..., x[t-1]) + log p(x[t] | x[t+1], ..., x[T]), here as a mean over both sums' terms.
    """

    kind: Literal["bilm"] = "bilm"
    """The objective's name."""
    title: ClassVar[str] = "Next token, from both ends (bilm)"
    refused: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("encoder", "decoder", "encoder and decoder"),
            "bilm predicts from either side alone; give the model 'decoder' with 'directions: 2'",
        ),
        **reads_running_text("bilm"),
        **predicts_all("bilm"),
        **starts_anew("bilm"),
    }
    peek_note: ClassVar[str | None] = (
        "x comes next; it is predicted from all before it, as is every token after the first; and read backwards "
        "every token is predicted from all after it"
    )
    bounded_by_frequencies: ClassVar[bool] = True

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "BidirectionalLanguageModel":
        return BidirectionalLanguageModel(self._head(model, vocabulary))


class BidirectionalLanguageModel:
    """Predicts the next token at every position forwards and the previous token backwards; N examples, T length."""

    name = "bilm"

    def __init__(self, head: Head) -> None:
        self.head: Head = head
        self.targets_per_token = 2.0

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """The next and the previous token of every position but padding.

        The first position of a row or a document has no previous token: that token is not in the row, or belongs to
        another document.
        """
        assert examples.following is not None
        ids, documents = examples.row.ids, examples.row.documents
        assert documents is not None
        labels = np.stack([examples.following, np.roll(ids, 1, axis=1)], axis=-1)  # (N, T, 2)
        predicted = np.stack([examples.padding_mask, examples.padding_mask], axis=-1)
        predicted[:, 0, 1] = False
        predicted[:, 1:, 1] &= documents[:, 1:] == documents[:, :-1]
        rows = np.flatnonzero(predicted)
        return Targets(rows, labels.ravel()[rows], directions=2)
