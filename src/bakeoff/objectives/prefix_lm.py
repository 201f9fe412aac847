"""Prefix language modelling: the beginning of a text is read, the rest is written."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.refusals import generates_for_a_source
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceBaseConfig, gather, rounded, teach, with_end
from bakeoff.randomness.draws import Draws
from bakeoff.row import Source
from bakeoff.tokenizer.tokenizer import Tokenizer


class PrefixLanguageModelConfig(SequenceToSequenceBaseConfig):
    """The encoder reads a prefix of each row, the decoder writes what follows (Raffel et al. 2020, section 3.2.3)."""

    kind: Literal["prefix_lm"] = "prefix_lm"
    """The objective's name."""
    continues_source: ClassVar[bool] = True
    title: ClassVar[str] = "The rest of a text (prefix_lm)"
    refused: ClassVar[Mapping[str, str]] = {
        **generates_for_a_source("prefix_lm"),
        "decoder": "prefix_lm has a source and a target; give the model both 'encoder' and 'decoder', or use "
        "prefix_clm",
    }

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "PrefixLanguageModel":
        return PrefixLanguageModel(self, model, vocabulary)


class PrefixLanguageModel:
    """Cuts rows in two at a random position, each position being equally likely; N examples, L tokens of text."""

    name = "prefix_lm"

    def __init__(self, config: PrefixLanguageModelConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = config.head_of_targets(model, vocabulary)
        self.targets_per_token = 1.0

    def lengths(self, length: int) -> tuple[int, int]:
        """Expected number of tokens of the source and of the target of a row, each with its separator."""
        read, written = length // 2 + 1, length - length // 2 + 1
        return self.config.source_length(read), self.config.target_length(written)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Rewrite the rows: the source is the text before the cut, the target the text after it."""
        padding_mask, text = examples.padding_mask, examples.row.ids
        column, length = np.arange(padding_mask.shape[1]), padding_mask.sum(1)
        cut = 1 + draws.integers("prefix", np.maximum(length - 1, 1))[:, None]  # both parts have a token
        source, kept = with_end(text, padding_mask & (column < cut), tokenizer.separator)
        examples.row = examples.row._replace(source=Source(*gather(source, kept, rounded(kept), tokenizer.pad)))
        target, kept = with_end(text, padding_mask & (column >= cut), tokenizer.separator)
        return teach(examples, *gather(target, kept, rounded(kept), tokenizer.pad), tokenizer, self.config)
