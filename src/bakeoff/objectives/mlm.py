"""Masked language modelling: some tokens are hidden, and predicted from both sides."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import Head, TokenHead
from bakeoff.objectives.objective import Scoring, Targets, TokenObjectiveConfig
from bakeoff.objectives.target_choice import RunLengths, TargetChoice, free_sources


class MaskedLanguageModelConfig(TokenObjectiveConfig):
    """BERT's masking (Devlin et al. 2019, arXiv:1810.04805), and ALBERT's n-grams (Lan et al. 2020, section 4.1)."""

    kind: Literal["mlm"] = "mlm"
    """The objective's name."""
    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens that are predicted; at least one, never a special token."""
    ngram: int = Field(default=1, ge=1, le=1000)
    """Hide runs of up to this many words; above 1 implies whole words."""
    lengths: RunLengths = "inverse"
    """Lengths of these runs: n words with probability proportional to 1/n (inverse; ALBERT), or to 0.8^n (geometric;
    with ngram 10 the spans of SpanBERT: Joshi et al. 2020, arXiv:1907.10529, section 3.1)."""
    whole_word: bool = False
    """Hide all tokens of a word together."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """dynamic: other places in every epoch (RoBERTa); static: the same ones for good."""
    copies: int = Field(default=1, ge=1)
    """Sets of static masks, which take turns from epoch to epoch; BERT's code makes 10."""
    mask: float = Field(default=0.8, ge=0, le=1)
    """Share of the predicted tokens whose input is [MASK]."""
    random: float = Field(default=0.1, ge=0, le=1)
    """Share whose input is a random token; the rest keep their own."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """Activation in the head."""
    scoring: ClassVar[Scoring | None] = "masked"

    @model_validator(mode="after")
    def _shares(self) -> "MaskedLanguageModelConfig":
        if self.mask + self.random > 1 + 1e-9:
            raise ValueError(f"mask {self.mask} and random {self.random} add up to more than 1")
        if self.copies > 1 and self.masking == "dynamic":
            raise ValueError(f"copies: {self.copies} are of static masks; set masking to static, or copies to 1")
        return self

    @property
    def versions(self) -> int | None:
        """Masks that stay need examples that stay."""
        return self.copies if self.masking == "static" else None

    def build(self, model: ModelConfig, vocabulary: int) -> "MaskedLanguageModel":
        """The objective with a fresh head."""
        return MaskedLanguageModel(self, model, vocabulary)


class MaskedLanguageModel:
    """Chooses the tokens to predict; N examples, T length."""

    name = "mlm"

    def __init__(self, config: MaskedLanguageModelConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        width = model.stack.output_width
        self.head: Head = TokenHead(
            width,
            model.table_width,
            vocabulary,
            True,
            config.activation,
            model.norm_epsilon,
            cap=config.logit_cap,
        )
        self.choice = TargetChoice(config.rate, config.ngram, config.lengths, config.whole_word)
        self.targets_per_token = config.rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the examples in place; the labels are the originals."""
        if self.config.versions is not None:
            draws = draws.static(self.config.versions)
        chosen = self.choice.choose(free_sources(examples, tokenizer), split, draws, examples.backwards)
        examples.take(chosen)
        rows = np.flatnonzero(chosen)
        labels = examples.ids.ravel()[rows]
        self._corrupt(examples.ids, chosen, tokenizer, draws)
        return Targets(rows, labels)

    def _corrupt(self, ids: NDArray[np.int64], chosen: NDArray[np.bool_], tokenizer: Tokenizer, draws: Draws) -> None:
        """Replace the chosen places' ids by [MASK], a random ordinary token, or nothing."""
        kind = draws.uniform("replacement", ids.shape[1])
        ids[chosen & (kind < self.config.mask)] = tokenizer.mask
        randomised = chosen & (kind >= self.config.mask) & (kind < self.config.mask + self.config.random)
        ordinary = np.setdiff1d(np.arange(tokenizer.size), tokenizer.special_ids)
        words = draws.words("random token", ids.shape[1])[randomised].astype(np.uint64)
        ids[randomised] = ordinary[((words * np.uint64(len(ordinary))) >> np.uint64(32)).astype(np.int64)]
