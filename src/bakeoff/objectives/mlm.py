"""Masked language modelling: some tokens are hidden, and predicted from both sides."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import TokenHead
from bakeoff.objectives.objective import ObjectiveConfig, Targets, refuse_unless_bidirectional


class MaskedLanguageModelConfig(ObjectiveConfig):
    """BERT's masking (Devlin et al. 2019, arXiv:1810.04805), and ALBERT's n-grams (Lan et al. 2020, section 4.1)."""

    kind: Literal["mlm"] = "mlm"
    """The objective's name."""
    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens that are predicted; at least one, never a special token."""
    ngram: int = Field(default=1, ge=1)
    """Hide runs of up to this many words, n words with probability proportional to 1/n; above 1 implies whole words."""
    whole_word: bool = False
    """Hide all tokens of a word together."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """dynamic: other places in every epoch (RoBERTa); static: the same ones for good."""
    mask: float = Field(default=0.8, ge=0, le=1)
    """Share of the predicted tokens whose input is [MASK]."""
    random: float = Field(default=0.1, ge=0, le=1)
    """Share whose input is a random token; the rest keep their own."""
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """Activation in the head."""

    @model_validator(mode="after")
    def _shares(self) -> "MaskedLanguageModelConfig":
        if self.mask + self.random > 1 + 1e-9:
            raise ValueError(f"mask {self.mask} and random {self.random} add up to more than 1")
        return self

    @property
    def static(self) -> bool:
        """Masks that stay need examples that stay."""
        return self.masking == "static"

    def refusal(self, model: ModelConfig, format: str) -> str | None:
        """Why this objective cannot train this model on this format, or None."""
        return refuse_unless_bidirectional("mlm", model)

    def build(self, model: ModelConfig, vocabulary: int) -> "MaskedLanguageModel":
        """The objective with a fresh head."""
        return MaskedLanguageModel(self, model, vocabulary)


class MaskedLanguageModel:
    """Chooses the tokens to predict; N examples, T length."""

    name = "mlm"

    def __init__(self, config: MaskedLanguageModelConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        width = model.stack.output_width
        self.head = TokenHead(width, model.table_width, vocabulary, True, config.activation, model.norm_epsilon)
        self.targets_per_token = config.rate

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the examples in place; the labels are the originals."""
        if self.config.static:
            draws = draws.static()
        # What the tokenizer did not know is a special token too, and nothing that could be learnt.
        known = examples.ids != (-1 if tokenizer.unknown is None else tokenizer.unknown)
        chosen = self.choose(np.where(known, examples.sources, -1), split, draws)
        rows = np.flatnonzero(chosen)
        labels = examples.ids.ravel()[rows]
        self._corrupt(examples.ids, chosen, tokenizer, draws)
        return Targets(rows, labels)

    def choose(self, sources: NDArray[np.int64], split: Split, draws: Draws) -> NDArray[np.bool_]:
        """(N, T) places in the text, -1 where there is no ordinary token, to (N, T) True where a token is predicted."""
        length = sources.shape[1]
        ordinary = sources >= 0
        wanted = np.maximum(np.rint(ordinary.sum(1) * self.config.rate), ordinary.any(1)).astype(np.int64)  # (N,)
        units = self._units(sources, split, draws)
        score = draws.words("mask order", length).astype(np.int64)
        score = np.take_along_axis(score, units, 1) * length + units  # equal within a unit, different between units
        score[~ordinary] = np.iinfo(np.int64).max
        order = np.argsort(score, axis=1, kind="stable")  # (N, T) places in the order in which they are hidden
        column = np.arange(length)
        taken = column < wanted[:, None]
        if self.config.whole_word or self.config.ngram > 1:
            ordered = np.take_along_axis(units, order, 1)
            starts_unit = np.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
            begin = np.maximum.accumulate(
                np.where(starts_unit, column, 0), axis=1
            )  # where the unit of each place begins
            taken = begin < wanted[:, None]
            # The last unit may overshoot. It is taken with the probability that makes the expected number right,
            # and always where it is the only one.
            over = begin == np.where(taken, begin, -1).max(1, keepdims=True)
            excess = (taken.sum(1) - wanted) / np.maximum((taken & over).sum(1), 1)
            dropped = (draws.uniform("last unit", 1)[:, 0] < excess) & (begin * over).any(1)
            taken &= ~(over & dropped[:, None])
        chosen = np.zeros_like(ordinary)
        np.put_along_axis(chosen, order, taken, axis=1)
        return chosen & ordinary

    def _units(self, sources: NDArray[np.int64], split: Split, draws: Draws) -> NDArray[np.int64]:
        """(N, T) the unit that each place is hidden with: tokens, words, or runs of words."""
        length = sources.shape[1]
        if not self.config.whole_word and self.config.ngram == 1:
            return np.broadcast_to(np.arange(length), sources.shape)
        ordinary = sources >= 0
        # A word also starts behind a special token, and where the text is not continued.
        starts = split.starts_word(np.maximum(sources, 0)) | np.pad(
            sources[:, 1:] != sources[:, :-1] + 1, ((0, 0), (1, 0)), constant_values=True
        )
        words = np.cumsum(starts & ordinary, 1) - 1
        if self.config.ngram == 1:
            return np.maximum(words, 0)
        # Runs of 1, 2, ... words are laid side by side over the row; choosing among them evenly keeps p(n).
        probability = 1 / np.arange(1, self.config.ngram + 1)
        bounds = np.cumsum(probability / probability.sum())
        lengths = np.searchsorted(bounds[:-1], draws.uniform("ngram", length), side="right") + 1  # (N, T)
        ends = np.cumsum(lengths, 1)
        first_of_run = np.zeros((len(sources), length + 1), np.int64)
        rows = np.broadcast_to(np.arange(len(sources))[:, None], ends.shape)
        first_of_run[rows, np.minimum(ends, length)] = 1
        run_of_word = np.cumsum(first_of_run[:, :length], 1)
        return np.take_along_axis(run_of_word, np.maximum(words, 0), 1)

    def _corrupt(self, ids: NDArray[np.int64], chosen: NDArray[np.bool_], tokenizer: Tokenizer, draws: Draws) -> None:
        """Replace the chosen places' ids by [MASK], a random ordinary token, or nothing."""
        kind = draws.uniform("replacement", ids.shape[1])
        ids[chosen & (kind < self.config.mask)] = tokenizer.mask
        randomised = chosen & (kind >= self.config.mask) & (kind < self.config.mask + self.config.random)
        ordinary = np.setdiff1d(np.arange(tokenizer.size), tokenizer.special_ids)
        words = draws.words("random token", ids.shape[1])[randomised].astype(np.uint64)
        ids[randomised] = ordinary[((words * np.uint64(len(ordinary))) >> np.uint64(32)).astype(np.int64)]
