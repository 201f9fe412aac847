"""Masked language modelling: some tokens are hidden, and predicted from both sides."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
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
    causal: float = Field(default=0.0, ge=0, le=1)
    """Share of the rows that are read causally in training, drawn independently for each: none of their tokens sees a
    later one, and each predicts the next one through the same head. Rows of both kinds count alike. Held-out rows are
    all read from both sides. For encoders whose layers can hide what is ahead.
    """
    of_training: ClassVar[frozenset[str]] = MaskingConfig.of_training | {"causal"}
    set_by_stage: ClassVar[frozenset[str]] = MaskingConfig.set_by_stage | {"causal"}
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
        self.causal = config.causal
        self.targets_per_token = config.mean_rate * (1 - config.causal) + config.causal

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the examples in place; the labels are the originals, and in causal rows the next tokens."""
        if self.causal == 0 or examples.measured:
            return Targets(*self.hide(examples, split, tokenizer, draws))
        causal = draws.static(self.config.versions).uniform("causal", 1)[:, 0] < self.causal
        row, length = examples.row, examples.row.ids.shape[1]
        examples.row = row._replace(causal=causal)
        assert row.documents is not None
        following = row.ids[:, 1:]
        goes_on = (row.documents[:, 1:] == row.documents[:, :-1]) & (row.documents[:, 1:] > 0) & causal[:, None]
        in_row, place = np.nonzero(goes_on)
        labels = following[in_row, place]
        allowed = np.broadcast_to(~causal[:, None], row.ids.shape)
        hidden, originals = self.hide(examples, split, tokenizer, draws, allowed)
        positions = np.concatenate([hidden, in_row * length + place])
        rising = np.argsort(positions, kind="stable")
        counts = np.bincount(positions // length, minlength=len(causal))
        weights = (1 / counts[positions // length]).astype(np.float32)
        each = np.concatenate([originals, labels])
        return Targets(positions[rising], each[rising], weights=weights[rising], counted=(counts > 0).astype(np.int64))
