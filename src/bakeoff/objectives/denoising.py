"""Denoising: the text is written again from a version with spans hidden and sentences in disorder (BART)."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bakeoff.corpus.draws import Draws
from bakeoff.corpus.store import Split
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.example import Examples
from bakeoff.objectives.heads import Head, table_head
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.sequence_to_sequence import SequenceToSequenceConfig, gather, ranks, rounded, teach, with_end


class DenoisingConfig(SequenceToSequenceConfig):
    """BART's text infilling and sentence permutation (Lewis et al. 2020, arXiv:1910.13461, section 2.2)."""

    kind: Literal["denoising"] = "denoising"
    """The objective's name."""
    rate: float = Field(default=0.3, gt=0, lt=1)
    """Share of the tokens that are hidden."""
    span: float = Field(default=3.0, gt=0)
    """Mean of the Poisson distribution of the spans' lengths; one of length 0 puts a mask where nothing is missing."""
    permute: bool = True
    """Put the sentences of a row into a random order."""

    def build(self, model: ModelConfig, vocabulary: int) -> "Denoising":
        """The objective with a fresh head."""
        return Denoising(self, model, vocabulary)


class Denoising:
    """Corrupts rows; N examples, L tokens of text, S spans."""

    name = "denoising"

    def __init__(self, config: DenoisingConfig, model: ModelConfig, vocabulary: int) -> None:
        self.config = config
        self.head: Head = table_head(model, vocabulary)
        self.targets_per_token = 1.0

    def lengths(self, length: int) -> tuple[int, int]:
        """Tokens of the source, as expected, and of the target of a row, the separator included."""
        hidden = round(length * self.config.rate)
        return length - hidden + round(hidden / self.config.span) + 1, length + 1

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Rewrite the rows: the source is the corrupted text, the target the text."""
        real = examples.documents > 0
        text = examples.ids
        order = self.order(examples.sources, real, split, draws) if self.config.permute else None
        shuffled = text if order is None else np.take_along_axis(text, order, 1)
        source, kept = with_end(*self.infill(shuffled, real.sum(1), tokenizer.mask, draws), tokenizer.separator)
        examples.source_ids, examples.source_real = gather(source, kept, rounded(kept), tokenizer.pad)
        target, kept = with_end(text, real, tokenizer.separator)
        return teach(examples, *gather(target, kept, target.shape[1], tokenizer.pad), tokenizer)

    def order(
        self, sources: NDArray[np.int64], real: NDArray[np.bool_], split: Split, draws: Draws
    ) -> NDArray[np.int64]:
        """(N, L) places of the text in the order of the shuffled sentences, padding last."""
        length = sources.shape[1]
        owner = np.searchsorted(np.asarray(split.sentences), sources, side="right")
        new = np.pad(owner[:, 1:] != owner[:, :-1], ((0, 0), (1, 0)), constant_values=False)
        sentence = np.cumsum(new, 1)  # (N, L) counted from 0 in each row
        keys = np.take_along_axis(draws.words("sentence order", length).astype(np.int64), sentence, 1)
        keys = np.where(real, keys * length + sentence, np.iinfo(np.int64).max)
        return np.argsort(keys, axis=1, kind="stable")

    def infill(
        self, text: NDArray[np.int64], real: NDArray[np.int64], mask: int, draws: Draws
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The text with a mask for each hidden span, and True where there is a token.

        Lengths are drawn until the share is hidden, the last one cut short; the spans stand anywhere among what stays.
        """
        hidden = np.rint(real * self.config.rate).astype(np.int64)  # (N,)
        drawn = self.drawn(int(hidden.max(initial=0)), draws)  # (N, S)
        before = np.cumsum(drawn, 1) - drawn
        used = before < hidden[:, None]
        lengths = np.where(used, np.minimum(drawn, hidden[:, None] - before), 0)
        lengths[:, -1] += hidden - lengths.sum(1)  # hardly ever: the numbers drawn were not enough
        spans = np.maximum(used.sum(1), hidden > 0)
        # In another order: the last one, cut short and never empty, is not to be always the row's last.
        order = np.where(used, -draws.words("span order", lengths.shape[1]).astype(np.int64), 1)
        lengths = np.take_along_axis(lengths, np.argsort(order, axis=1, kind="stable"), 1)
        slots = real - hidden + spans  # (N,) tokens that stay, and masks
        width = int(slots.max(initial=1))
        words = draws.words("span places", width).astype(np.int64)
        inside = np.arange(width) < slots[:, None]
        is_span = inside & (ranks(np.where(inside, words, np.iinfo(np.int64).max)) < spans[:, None])
        number = np.maximum(np.cumsum(is_span, 1) - 1, 0)
        consumed = np.where(is_span, np.take_along_axis(lengths, number, 1), 1)
        place = np.minimum(np.cumsum(consumed, 1) - consumed, text.shape[1] - 1)
        return np.where(is_span, mask, np.take_along_axis(text, place, 1)), inside

    def drawn(self, hidden: int, draws: Draws) -> NDArray[np.int64]:
        """(N, S) numbers from the Poisson distribution, enough to hide `hidden` tokens."""
        mean = self.config.span
        count = 8 + math.ceil(hidden * max(1.0, 2 / mean))
        longest = math.ceil(mean + 10 * math.sqrt(mean) + 10)
        terms = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(longest)]
        return np.searchsorted(np.cumsum(terms), draws.uniform("span lengths", count), side="right").astype(np.int64)
