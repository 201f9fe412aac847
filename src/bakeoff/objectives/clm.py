"""Causal language modelling: each token is predicted from those before it."""

from typing import ClassVar, Literal

import numpy as np

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import TokenHead
from bakeoff.objectives.objective import ObjectiveConfig, Targets


class CausalLanguageModelConfig(ObjectiveConfig):
    """Next-token prediction at every position (Radford et al. 2018)."""

    kind: Literal["clm"] = "clm"
    """The objective's name."""
    running: ClassVar[bool] = True

    def refusal(self, model: ModelConfig, format: str) -> str | None:
        """Why this objective cannot train this model on this format, or None."""
        if not model.causal:
            return "clm predicts the next token, which a model with 'encoder' can see; use 'decoder'"
        if format != "blocks":
            return f"clm needs running text, but input.format is {format}; use blocks"
        return None

    def build(self, model: ModelConfig, vocabulary: int) -> "CausalLanguageModel":
        """The objective with a fresh head."""
        return CausalLanguageModel(model, vocabulary)


class CausalLanguageModel:
    """Every token of the text is a target; the head is the embedding's table alone."""

    name = "clm"

    def __init__(self, model: ModelConfig, vocabulary: int) -> None:
        width = model.stack.output_width
        self.head = TokenHead(width, model.table_width, vocabulary, False, "gelu", model.norm_epsilon)
        self.targets_per_token = 1.0

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """All places but padding, and the ids that follow them."""
        assert examples.following is not None
        rows = np.flatnonzero(examples.documents > 0)
        return Targets(rows, examples.following.ravel()[rows])
