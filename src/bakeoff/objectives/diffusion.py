"""Masked diffusion: tokens are hidden at a rate drawn for each row, and their weighted loss bounds a likelihood."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head, transformed_head
from bakeoff.objectives.masking import HiddenTokensConfig
from bakeoff.objectives.objective import Scoring, Targets
from bakeoff.objectives.refusals import sees_both_sides
from bakeoff.objectives.target_choice import free_sources
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, lie evenly between 0 and 1 (Kronecker's sequence)."""


class DiffusionConfig(HiddenTokensConfig):
    """A row has t ~ U(0, 1), each of its tokens is [MASK] with probability t, and the loss is 1/t times their sum.

    Divided by the number of all tokens, its mean over rows and t is at least minus the log-likelihood of the text, in
    nats a token: the bound of MDLM (Sahoo et al. 2024, arXiv:2406.07524, equation 10) and LLaDA (Nie et al. 2025,
    arXiv:2502.09992, equation 3). It is no likelihood, and compares with none.
    """

    kind: Literal["diffusion"] = "diffusion"
    """The objective's name."""
    smallest: float = Field(default=1e-3, gt=0, lt=1)
    """The smallest t: it is drawn evenly between this and 1."""
    title: ClassVar[str] = "Masked tokens at random rates, a bound (diffusion)"
    refused: ClassVar[Mapping[str, str]] = sees_both_sides("diffusion")
    bounded_by_frequencies: ClassVar[bool] = True
    bounds: ClassVar[bool] = True
    scoring: ClassVar[Scoring | None] = "masked"
    set_by_stage: ClassVar[frozenset[str]] = frozenset(("smallest",))

    @field_validator("z_loss")
    @classmethod
    def _no_other_loss(cls, value: float) -> float:
        if value:
            raise ValueError("the loss of diffusion is a bound, to which nothing can be added; set it to 0")
        return value

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "Diffusion":
        return Diffusion(self, model, vocabulary)


class Diffusion:
    """Draws the rate of each row, and hides its tokens; N examples, T length."""

    name = "diffusion"

    def __init__(self, config: DiffusionConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = transformed_head(model, vocabulary, config.activation, config.map_bias)
        self.targets_per_token = (1 + config.smallest) / 2

    def rates(self, draws: Draws) -> NDArray[np.float64]:
        """(N,) t of each row, drawn evenly; those of neighbouring examples lie far apart, so that any rows hold all."""
        shift = Draws(draws.seed, draws.epoch, np.zeros_like(draws.examples)).uniform("rates", 1)[:, 0]
        even = (shift + draws.examples * GOLDEN) % 1.0
        return self.config.smallest + (1 - self.config.smallest) * even

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the examples in place; the labels are the originals, with a weight of 1/t."""
        ordinary = free_sources(examples, tokenizer) >= 0
        rates = self.rates(draws)[:, None]
        hidden = ordinary & (draws.uniform("hidden", ordinary.shape[1]) < rates)
        examples.take(hidden)
        positions = np.flatnonzero(hidden)
        labels = examples.row.ids.ravel()[positions]
        examples.row.ids[hidden] = tokenizer.mask
        weights = np.broadcast_to(1 / rates, hidden.shape)[hidden].astype(np.float32)
        return Targets(positions, labels, weights=weights, counted=ordinary.sum(1))
