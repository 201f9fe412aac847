"""Translation: the decoder writes the target of a pair whose source the encoder has read."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.refusals import has_a_source, starts_anew
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceBaseConfig, teach
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

_NO_PAIRS = {
    each: f"translation needs pairs of a source and a target, but input.format is {each}; use parallel"
    for each in ("blocks", "full_sentences", "doc_sentences", "segment_pair", "sentence_pair", "continued_pair")
}


class TranslationConfig(SequenceToSequenceBaseConfig):
    """Supervised sequence to sequence with teacher forcing (Vaswani et al. 2017), on pairs of texts."""

    kind: Literal["translation"] = "translation"
    """The objective's name."""
    title: ClassVar[str] = "A target for its source (translation)"
    refused: ClassVar[Mapping[str, str]] = {**has_a_source("translation"), **_NO_PAIRS, **starts_anew("translation")}
    of_training: ClassVar[frozenset[str]] = SequenceToSequenceBaseConfig.of_training | {"label_smoothing"}
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """In training, the share of the target's probability that is spread evenly over the vocabulary (Szegedy et al.
    2016, arXiv:1512.00567, section 7); held-out losses are without it."""

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "Translation":
        return Translation(self, model, vocabulary)


class Translation:
    """Every token of the target is predicted."""

    name = "translation"

    def __init__(self, config: TranslationConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = config.head_of_targets(model, vocabulary, config.label_smoothing)
        self.targets_per_token = 1.0

    def lengths(self, length: int) -> tuple[int, int]:
        """The largest numbers of tokens of a source and of a target."""
        return self.config.source_length(length), self.config.target_length(length)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """The tokens of the targets; the decoder's input is the target shifted by one token."""
        return teach(examples, examples.row.ids, examples.padding_mask, tokenizer, self.config)
