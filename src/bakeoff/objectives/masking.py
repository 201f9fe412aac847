"""Hiding tokens: the choice of tokens, and the ids that replace them. N examples, T length."""

from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, HeadTransform, head_transform, transformed_head
from bakeoff.objectives.objective import TokenObjectiveConfig
from bakeoff.objectives.target_choice import STOP, RunLengths, TargetChoice, free_sources
from bakeoff.optimization.course import evenly
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class HiddenTokensConfig(TokenObjectiveConfig):
    """The common fields of objectives that hide tokens and predict them through BERT's head."""

    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """Activation in the head."""
    map_bias: bool = True
    """The head's linear layer has a bias; ModernBERT's has none. The scores of the tokens have a bias in any case."""

    @property
    def head_activation(self) -> str | None:
        """The activation of the transform in front of the head's table."""
        return self.activation

    def transform(self, model: ModelConfig) -> HeadTransform:
        """The transform in front of the head's table."""
        return head_transform(model, self.activation, self.map_bias)


class MaskingConfig(HiddenTokensConfig):
    """BERT's masking (Devlin et al. 2019, arXiv:1810.04805), and ALBERT's n-grams (Lan et al. 2020, section 4.1)."""

    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens that are predicted; at least one, never a special token."""
    first_rate: float | None = Field(default=None, gt=0, lt=1)
    """The share in the first step of a training, from which it changes evenly to `rate` at the end (Yang et al. 2023,
    arXiv:2305.15096; GPT-BERT). Held-out text has `rate`. Absent: the share is `rate` throughout.
    """
    held_out_rate: float | None = Field(default=None, gt=0, lt=1)
    """The share in held-out text, wherever a loss is measured: ModernBERT's is 0.15, so that losses of trainings with
    other shares can be compared (Warner et al. 2024, arXiv:2412.13663). Absent: `rate`.
    """
    ngram: int = Field(default=1, ge=1, le=1000)
    """Hide runs of up to this many words; above 1 implies whole words."""
    lengths: RunLengths = "inverse"
    """Distribution of the lengths of these runs: n words with probability proportional to 1/n (inverse; ALBERT),
    proportional to (1 - stop)^n (geometric), or equal for all n (uniform).
    """
    stop: float = Field(default=STOP, gt=0, lt=1)
    """The probability that a run of geometric length ends after any of its words. 0.2 with ngram 10 gives the spans of
    SpanBERT (Joshi et al. 2020, arXiv:1907.10529, section 3.1), 1/3 with ngram 9 those of LTG-BERT.
    """
    runs: Literal["words", "tokens"] = "words"
    """The unit of the runs' lengths; runs of tokens begin and end anywhere in a word (LTG-BERT, GPT-BERT)."""
    whole_word: bool = False
    """Hide all tokens of a word together."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """dynamic: other positions in every epoch (RoBERTa); static: the same positions in every epoch, or in turn with
    `copies`.
    """
    copies: int = Field(default=1, ge=1)
    """Number of sets of static masks, used in turn from epoch to epoch; BERT's code makes 10."""
    mask: float = Field(default=0.8, ge=0, le=1)
    """Share of the predicted tokens whose input is [MASK]."""
    random: float = Field(default=0.1, ge=0, le=1)
    """Share of the predicted tokens whose input is a random token; the rest keep their own."""
    replace: Literal["token", "run"] = "token"
    """The unit for which the shares `mask` and `random` are drawn: each token by itself, or a whole word or run, whose
    tokens are then all [MASK], all random, or all kept (LTG-BERT, GPT-BERT).
    """

    of_training: ClassVar[frozenset[str]] = TokenObjectiveConfig.of_training | {"first_rate", "masking", "copies"}
    set_by_stage: ClassVar[frozenset[str]] = frozenset(
        ("rate", "first_rate", "ngram", "lengths", "stop", "runs", "whole_word", "mask", "random", "replace")
    )

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.mask + self.random > 1 + 1e-9:
            raise ValueError(f"mask {self.mask} and random {self.random} add up to more than 1")
        if self.runs == "tokens" and (self.ngram == 1 or self.whole_word):
            what = "whole_word hides words" if self.whole_word else "ngram: 1 makes none"
            raise ValueError(f"runs: tokens is about runs of several, but {what}; change either")
        if self.replace == "run" and self.ngram == 1 and not self.whole_word:
            raise ValueError("replace: run, but each token is hidden by itself; set ngram, or whole_word")
        if self.first_rate is not None and self.masking == "static":
            raise ValueError("first_rate: static masks stay what they are; set masking to dynamic")
        if self.copies > 1 and self.masking == "dynamic":
            raise ValueError(f"copies: {self.copies} are of static masks; set masking to static, or copies to 1")
        return self

    @property
    def mean_rate(self) -> float:
        """The mean share of predicted tokens over the steps of a training."""
        return self.rate if self.first_rate is None else (self.first_rate + self.rate) / 2

    def rates(self, examples: Examples) -> NDArray[np.float64] | None:
        """(N,) the share of predicted tokens in each of N rows; None: `rate` in all rows."""
        if examples.measured:
            return None if self.held_out_rate is None else np.full(len(examples.row.ids), self.held_out_rate)
        if self.first_rate is None or examples.progress is None:
            return None
        return evenly(self.first_rate, self.rate, examples.progress)

    @property
    def versions(self) -> int | None:
        """The number of sets of static masks, which limits the versions of an example; None for dynamic masks."""
        return self.copies if self.masking == "static" else None


class Masking:
    """The common part of objectives that hide tokens.

    Attributes:
        config: the choice of tokens, and the ids that replace them.
        head: the module that scores the hidden tokens.
    """

    def __init__(self, config: MaskingConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = transformed_head(model, vocabulary, config.activation, config.map_bias)
        self.choice = TargetChoice(
            config.rate, config.ngram, config.lengths, config.whole_word, stop=config.stop, of=config.runs
        )

    def hide(
        self,
        examples: Examples,
        split: Split,
        tokenizer: Tokenizer,
        draws: Draws,
        allowed: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hide tokens of the examples in place; static masks stay the same from epoch to epoch.

        Args:
            examples: rows of text.
            split: the text.
            tokenizer: its tokenizer.
            draws: the random numbers of these rows.
            allowed: (N, T) positions that may be chosen; None: all.

        Returns:
            (n,) the hidden positions, counted over the flattened (N * T), in rising order, and (n,) their original ids.
        """
        draws = draws.static(self.config.versions)
        sources = free_sources(examples, tokenizer)
        if allowed is not None:
            sources = np.where(allowed, sources, -1)
        rates = self.config.rates(examples)
        chosen = self.choice.choose(sources, split, draws, examples.row.backwards, rates)
        examples.take(chosen)
        positions = np.flatnonzero(chosen)
        originals = examples.row.ids.ravel()[positions]
        kind = draws.uniform("replacement", sources.shape[1])
        if self.config.replace == "run":
            kind = np.take_along_axis(kind, self.choice.units(sources, split, draws, examples.row.backwards), 1)
        self._corrupt(examples.row.ids, chosen, kind, tokenizer, draws)
        return positions, originals

    def _corrupt(
        self,
        ids: NDArray[np.int64],
        chosen: NDArray[np.bool_],
        kind: NDArray[np.float64],
        tokenizer: Tokenizer,
        draws: Draws,
    ) -> None:
        """Replace chosen positions' ids by [MASK] or a random ordinary token, or keep them, as (N, T) `kind` says."""
        ids[chosen & (kind < self.config.mask)] = tokenizer.mask
        randomised = chosen & (kind >= self.config.mask) & (kind < self.config.mask + self.config.random)
        ordinary = np.setdiff1d(np.arange(tokenizer.size), tokenizer.special_ids)
        words = draws.words("random token", ids.shape[1])[randomised].astype(np.uint64)
        ids[randomised] = ordinary[((words * np.uint64(len(ordinary))) >> np.uint64(32)).astype(np.int64)]
