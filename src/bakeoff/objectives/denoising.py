"""Denoising: the text is written again from a version with tokens hidden, gone, or in another order (BART)."""

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.refusals import generates_for_a_source
from bakeoff.objectives.sequence_to_sequence import (
    SequenceToSequenceBaseConfig,
    gather,
    ranks,
    rounded,
    teach,
    with_end,
)
from bakeoff.randomness.draws import Draws
from bakeoff.row import Source
from bakeoff.tokenizer.tokenizer import Tokenizer


class DenoisingConfig(SequenceToSequenceBaseConfig):
    """BART's five ways to corrupt a text (Lewis et al. 2020, arXiv:1910.13461, section 2.2)."""

    kind: Literal["denoising"] = "denoising"
    """The objective's name."""
    title: ClassVar[str] = "Corrupted text (denoising)"
    refused: ClassVar[Mapping[str, str]] = generates_for_a_source("denoising")
    noise: Literal["infilling", "masking", "deletion", "none"] = "infilling"
    """The fate of the hidden tokens: each span becomes one mask (infilling), each token becomes a mask (masking),
    tokens are removed without a trace (deletion), or nothing is hidden (none).
    """
    rate: float = Field(default=0.3, gt=0, lt=1)
    """Share of the tokens that are hidden."""
    span: float = Field(default=3.0, gt=0)
    """Mean of the Poisson distribution of the spans' lengths; a span of length 0 inserts a mask and removes nothing."""
    permute: bool = True
    """Put the sentences of a row into a random order."""
    rotate: bool = False
    """Begin the source at a random token, and move the text before that token to the end."""

    @model_validator(mode="after")
    def _something_to_restore(self) -> Self:
        if self.noise == "none" and not (self.permute or self.rotate):
            raise ValueError("noise: with none, and neither permute nor rotate, the source is the target; set one")
        if self.permute and self.rotate:
            raise ValueError("rotate: of sentences in disorder it would but cut one in two; set permute to false")
        if self.noise == "none" and self.rate != DenoisingConfig.model_fields["rate"].default:
            raise ValueError(f"rate: {self.rate:g} of the tokens cannot be hidden where noise is none; leave it out")
        if self.noise != "infilling" and self.span != DenoisingConfig.model_fields["span"].default:
            raise ValueError(f"span: noise {self.noise} hides single tokens or none; leave it out, or use infilling")
        return self

    @property
    @override
    def about_source(self) -> str | None:
        changes = {
            "lacks tokens, and has nothing in their place": self.noise == "deletion",
            "has its sentences in a random order; the target has the text's": self.permute,
            "begins at any token, and has the text's beginning after its end": self.rotate,
        }
        return "; ".join(text for text, made in changes.items() if made) or None

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "Denoising":
        return Denoising(self, model, vocabulary)


class Denoising:
    """Corrupts rows; N examples, L tokens of text, S spans."""

    name = "denoising"

    def __init__(self, config: DenoisingConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = config.head_of_targets(model, vocabulary)
        self.targets_per_token = 1.0

    def lengths(self, length: int) -> tuple[int, int]:
        """Expected number of tokens of the source, and number of tokens of the target, separator included."""
        hidden = round(length * self.config.rate)
        fewer = {"infilling": hidden - round(hidden / self.config.span), "deletion": hidden}.get(self.config.noise, 0)
        return self.config.source_length(length - fewer + 1), self.config.target_length(length + 1)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Rewrite the rows: the source is the corrupted text, the target the text."""
        padding_mask = examples.padding_mask
        text = examples.row.ids
        order = self.order(examples.sources, padding_mask, split, draws) if self.config.permute else None
        shuffled = text if order is None else np.take_along_axis(text, order, 1)
        source, kept = self.corrupt(shuffled, padding_mask, tokenizer, draws)
        if self.config.rotate:
            source = rotated(source, kept.sum(1), draws)
        source, kept = with_end(source, kept, tokenizer.separator)
        examples.row = examples.row._replace(source=Source(*gather(source, kept, rounded(kept), tokenizer.pad)))
        target, kept = with_end(text, padding_mask, tokenizer.separator)
        return teach(examples, *gather(target, kept, target.shape[1], tokenizer.pad), tokenizer, self.config)

    def corrupt(
        self, text: NDArray[np.int64], padding_mask: NDArray[np.bool_], tokenizer: Tokenizer, draws: Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The (N, L) text with its share of tokens hidden, and True for its tokens, which come first, padding last."""
        if self.config.noise == "none":
            return text, padding_mask
        if self.config.noise == "infilling":
            return self.infill(text, padding_mask.sum(1), tokenizer.mask, draws)
        hidden = np.rint(padding_mask.sum(1) * self.config.rate).astype(np.int64)
        score = np.where(
            padding_mask, draws.words("hidden tokens", text.shape[1]).astype(np.int64), np.iinfo(np.int64).max
        )
        chosen = ranks(score) < hidden[:, None]
        if self.config.noise == "masking":
            return np.where(chosen, tokenizer.mask, text), padding_mask
        return gather(text, padding_mask & ~chosen, text.shape[1], tokenizer.pad)

    def order(
        self, sources: NDArray[np.int64], padding_mask: NDArray[np.bool_], split: Split, draws: Draws
    ) -> NDArray[np.int64]:
        """(N, L) positions in the row, in the order of the shuffled sentences, padding last."""
        length = sources.shape[1]
        owner = np.searchsorted(np.asarray(split.sentences), sources, side="right")
        new = np.pad(owner[:, 1:] != owner[:, :-1], ((0, 0), (1, 0)), constant_values=False)
        sentence = np.cumsum(new, 1)  # (N, L) counted from 0 in each row
        keys = np.take_along_axis(draws.words("sentence order", length).astype(np.int64), sentence, 1)
        keys = np.where(padding_mask, keys * length + sentence, np.iinfo(np.int64).max)
        return np.argsort(keys, axis=1, kind="stable")

    def infill(
        self, text: NDArray[np.int64], padding_mask: NDArray[np.int64], mask: int, draws: Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The text with a mask for each hidden span, and True where there is a token.

        Lengths are drawn until the share is hidden, and the last one is cut short; the spans stand at random positions
        among the remaining tokens.
        """
        hidden = np.rint(padding_mask * self.config.rate).astype(np.int64)  # (N,)
        drawn = self.drawn(int(hidden.max(initial=0)), draws)  # (N, S)
        before = np.cumsum(drawn, 1) - drawn
        used = before < hidden[:, None]
        lengths = np.where(used, np.minimum(drawn, hidden[:, None] - before), 0)
        lengths[:, -1] += hidden - lengths.sum(1)  # hardly ever: the numbers drawn were not enough
        spans = np.maximum(used.sum(1), hidden > 0)
        # In another order: the last one, cut short and never empty, is not to be always the row's last.
        order = np.where(used, -draws.words("span order", lengths.shape[1]).astype(np.int64), 1)
        lengths = np.take_along_axis(lengths, np.argsort(order, axis=1, kind="stable"), 1)
        slots = padding_mask - hidden + spans  # (N,) tokens that stay, and masks
        width = int(slots.max(initial=1))
        words = draws.words("span places", width).astype(np.int64)
        inside = np.arange(width) < slots[:, None]
        is_span = inside & (ranks(np.where(inside, words, np.iinfo(np.int64).max)) < spans[:, None])
        number = np.maximum(np.cumsum(is_span, 1) - 1, 0)
        consumed = np.where(is_span, np.take_along_axis(lengths, number, 1), 1)
        position = np.minimum(np.cumsum(consumed, 1) - consumed, text.shape[1] - 1)
        return np.where(is_span, mask, np.take_along_axis(text, position, 1)), inside

    def drawn(self, hidden: int, draws: Draws) -> NDArray[np.int64]:
        """(N, S) numbers from the Poisson distribution, with S large enough to hide `hidden` tokens."""
        mean = self.config.span
        count = 8 + math.ceil(hidden * max(1.0, 2 / mean))
        longest = math.ceil(mean + 10 * math.sqrt(mean) + 10)
        terms = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(longest)]
        return np.searchsorted(np.cumsum(terms), draws.uniform("span lengths", count), side="right").astype(np.int64)


def rotated(text: NDArray[np.int64], padding_mask: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
    """(N, L) rows of (N,) real tokens, rotated to begin at a random token; each token is equally likely."""
    begin = draws.integers("rotation", np.maximum(padding_mask, 1))[:, None]
    position, length = np.arange(text.shape[1]), padding_mask[:, None]
    turned = np.where(position < length, (position + begin) % np.maximum(length, 1), position)
    return np.take_along_axis(text, turned, 1)
