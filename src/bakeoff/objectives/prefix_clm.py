"""Causal language modelling after a prefix: the beginning of a row is seen from both sides, the rest is written."""

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
from bakeoff.objectives.refusals import predicts_all, reads_in_order, starts_anew
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class PrefixCausalLanguageModelConfig(LanguageModelConfig):
    """The prefix LM of one stack (Raffel et al. 2020, arXiv:1910.10683, section 3.2.1).

    The tokens of the prefix all see each other. The tokens after it see all tokens before them, and only they are
    predicted.
    """

    kind: Literal["prefix_clm"] = "prefix_clm"
    """The objective's name."""
    title: ClassVar[str] = "Next token after a prefix (prefix_clm)"
    refused: ClassVar[Mapping[str, str]] = {
        "encoder": "prefix_clm predicts the next token, which a model with 'encoder' can see; use 'decoder'",
        "decoder with directions: 2": "prefix_clm reads in one direction, and the model has 'directions: 2'; use bilm, "
        "or set it to 1",
        "encoder and decoder": "prefix_clm leaves the encoder without anything to read; use prefix_lm",
        "mixers that do not attend": "prefix_clm shows tokens of a prefix what is ahead of them: attention of any "
        "kind can look there, no other mixer",
        "t5 positions of one side": "prefix_clm shows tokens what is ahead of them, where this decoder's t5 positions "
        "tell no distances; set two_sided of its mixers to true",
        **reads_in_order("prefix_clm"),
        **predicts_all("prefix_clm"),
        **starts_anew("prefix_clm"),
    }
    bounded_by_frequencies: ClassVar[bool] = True
    peek_note: ClassVar[str | None] = (
        "x comes next; it is predicted from all before it, as is every token after the prefix"
    )
    generates: ClassVar[bool] = True
    reads_prefix: ClassVar[bool] = True

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "PrefixCausalLanguageModel":
        return PrefixCausalLanguageModel(self._head(model, vocabulary))


class PrefixCausalLanguageModel:
    """Cuts rows in two at a random position, each position being equally likely; N examples, T length."""

    name = "prefix_clm"

    def __init__(self, head: Head) -> None:
        self.head: Head = head
        self.targets_per_token = 0.5

    def pairs_ahead(self, length: int) -> float:
        """Expected number of pairs of tokens in a row of which the first sees the second, which stands after it.

        A prefix of n tokens has n (n - 1) / 2 such pairs; the mean over n = 1, ..., T is (T^2 - 1) / 6.
        """
        return (length**2 - 1) / 6

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Give each row a prefix of at least one token; the labels are all tokens after the prefix."""
        assert examples.following is not None
        padding_mask = examples.padding_mask
        prefix = 1 + draws.integers("prefix", padding_mask.sum(1))
        examples.row = examples.row._replace(prefix=prefix)
        rows = np.flatnonzero(padding_mask & (np.arange(padding_mask.shape[1]) >= prefix[:, None] - 1))
        return Targets(rows, examples.following.ravel()[rows])
