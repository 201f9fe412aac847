"""Masked language modelling: some tokens are hidden, and predicted from both sides."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.masking import Masking, MaskingConfig
from bakeoff.objectives.objective import Scoring, Targets
from bakeoff.objectives.refusals import sees_both_sides
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class MaskedLanguageModelConfig(MaskingConfig):
    """Each hidden token is predicted at its own position, by a model that sees both sides (Devlin et al. 2019)."""

    kind: Literal["mlm"] = "mlm"
    """The objective's name."""
    title: ClassVar[str] = "Masked tokens (mlm)"
    refused: ClassVar[Mapping[str, str]] = sees_both_sides("mlm")
    bounded_by_frequencies: ClassVar[bool] = True
    scoring: ClassVar[Scoring | None] = "masked"

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "MaskedLanguageModel":
        return MaskedLanguageModel(self, model, vocabulary)


class MaskedLanguageModel(Masking):
    """Chooses the tokens to predict; N examples, T length."""

    name = "mlm"

    def __init__(self, config: MaskedLanguageModelConfig, model: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, model, vocabulary)
        self.targets_per_token = config.mean_rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the examples in place; the labels are the originals."""
        return Targets(*self.hide(examples, split, tokenizer, draws))
