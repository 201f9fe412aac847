"""Deshuffling: the text is written again from its tokens in disorder (T5)."""

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
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceBaseConfig, gather, teach, with_end
from bakeoff.randomness.draws import Draws
from bakeoff.row import Source
from bakeoff.tokenizer.tokenizer import Tokenizer


class DeshufflingConfig(SequenceToSequenceBaseConfig):
    """All tokens of a row in a random order, and the text as the target (Raffel et al. 2020, section 3.3.1)."""

    kind: Literal["deshuffling"] = "deshuffling"
    """The objective's name."""
    title: ClassVar[str] = "Text in disorder (deshuffling)"
    refused: ClassVar[Mapping[str, str]] = generates_for_a_source("deshuffling")

    @property
    @override
    def about_source(self) -> str:
        return "has the text's tokens in a random order"

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "Deshuffling":
        return Deshuffling(self, model, vocabulary)


class Deshuffling:
    """Shuffles rows, every order being equally likely; N examples, L tokens of text."""

    name = "deshuffling"

    def __init__(self, config: DeshufflingConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = config.head_of_targets(model, vocabulary)
        self.targets_per_token = 1.0

    def lengths(self, length: int) -> tuple[int, int]:
        """Number of tokens of the source and of the target of a row, each with its separator."""
        return self.config.source_length(length + 1), self.config.target_length(length + 1)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Rewrite the rows: the source is the shuffled text, the target the text."""
        padding_mask, text = examples.padding_mask, examples.row.ids
        words = draws.words("token order", text.shape[1]).astype(np.int64)
        order = np.argsort(np.where(padding_mask, words, np.iinfo(np.int64).max), axis=1, kind="stable")  # padding last
        source, kept = with_end(np.take_along_axis(text, order, 1), padding_mask, tokenizer.separator)
        examples.row = examples.row._replace(source=Source(*gather(source, kept, source.shape[1], tokenizer.pad)))
        target, kept = with_end(text, padding_mask, tokenizer.separator)
        return teach(examples, *gather(target, kept, target.shape[1], tokenizer.pad), tokenizer, self.config)
