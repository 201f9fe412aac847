"""XLNet's rows: text that the next row continues, two segments, and [CLS] last (Yang et al. 2019)."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples, Format
from bakeoff.formats.input_config import RowMarks
from bakeoff.formats.pairs import PairConfig
from bakeoff.formats.relation import Relation
from bakeoff.formats.stream import TokenStream
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer import Tokenizer

SPECIAL_TOKENS = 3
"""Number of special tokens in every row: two [SEP] and [CLS]."""


class ContinuedPairConfig(PairConfig):
    """`reuse` tokens of the running text, segment A that continues it, [SEP], segment B, [SEP], [CLS].

    The row of the next step begins after the first `reuse` tokens, and the model remembers their hidden states
    (section 2.4 of arXiv:1906.08237, and the published code).
    """

    format: Literal["continued_pair"] = "continued_pair"
    """The format's name."""
    reuse: int = Field(gt=0)
    """Number of tokens at the beginning of a row that are remembered; the next row begins after them. 256 of 512 in
    XLNet.
    """
    unrelated: float = Field(default=0.5, ge=0, le=1)
    """Share of the rows whose segment B comes from another place of the text; in the others it follows A."""
    backwards: bool = True
    """Every other row of a batch reads the text from its end."""
    start_last: ClassVar[bool] = True
    uneven: ClassVar[bool] = False

    @model_validator(mode="after")
    def _room_for_segments(self) -> Self:
        if self.reuse > self.length - SPECIAL_TOKENS - 2:
            raise ValueError(f"reuse: {self.reuse} of {self.length} tokens leave none for two segments; give fewer")
        return self

    @property
    def continues(self) -> bool:
        """True: rows of a batch always continue those of the previous batch."""
        return True

    @property
    def remembered_tokens(self) -> int:
        """Number of tokens of the previous row to which a row can attend: `reuse`."""
        return self.reuse

    @property
    def directions(self) -> int:
        """Number of directions in which the text is read: 2 with `backwards`, else 1."""
        return 2 if self.backwards else 1

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None) -> "ContinuedPairs":
        """The format over a split; no objective arranges its segments."""
        return ContinuedPairs(self, split, tokenizer)


class ContinuedPairs(Format):
    """Rows cut from the stream of tokens, read forwards or from its end; N rows.

    In the stream that is read from its end, position p is position total - 1 - p of the stream.
    """

    def __init__(self, config: ContinuedPairConfig, split: Split, tokenizer: Tokenizer) -> None:
        self.stream = TokenStream(split, tokenizer, isolate=False)
        self.config = config
        self.advance = config.reuse
        self.directions = config.directions
        self.own = config.length - config.reuse - SPECIAL_TOKENS  # tokens of both segments
        room = self.stream.total - config.reuse - self.own
        self.size = self.directions * (1 + room // config.reuse if room >= 0 else 0)
        self.tokens_per_example = float(config.length)
        self.sentences = np.asarray(split.sentences)

    def examples(self, indices: NDArray[np.int64], draws: Draws) -> Examples:
        """The rows; the end of A and the origin of B are drawn anew in every epoch."""
        reuse, text_length, total = self.config.reuse, self.own, self.stream.total
        half, number = np.divmod(indices, self.size // self.directions)
        turned = half > 0
        first = number * reuse  # where the row begins, in the order of reading
        begin = first + reuse  # where A does
        wished = begin + 1 + (draws.uniform("cut", 1)[:, 0] * (text_length - 1)).astype(np.int64)
        near = self._sentences(wished, turned)  # a sentence's end if there is one in the row's room
        fits = (near > begin) & (near < begin + text_length)
        end = np.where(fits[0], near[0], np.where(fits[1], near[1], wished))
        rest = total - (text_length - (end - begin))  # where B can begin at the latest
        anywhere = self._sentences((draws.uniform("other place", 1)[:, 0] * (rest + 1)).astype(np.int64), turned)[0]
        unrelated = draws.uniform("unrelated", 1)[:, 0] < self.config.unrelated
        second = np.where(unrelated, np.minimum(anywhere, rest), end)
        positions = first[:, None] + np.arange(reuse + text_length)
        in_second = positions >= end[:, None]
        positions += np.where(in_second, (second - end)[:, None], 0)
        ids, _, sources = self.stream.rows(np.where(turned[:, None], total - 1 - positions, positions), total)
        return self._with_marks(ids, sources, in_second, turned, second == end)

    def _sentences(self, positions: NDArray[np.int64], turned: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(2, N) the boundaries of sentences around some positions, the nearer one first, in the order of reading."""
        total = self.stream.total
        tokens = self.stream.tokens(np.where(turned, total - positions, positions))
        above = np.searchsorted(self.sentences, tokens)
        below = np.maximum(above - 1, 0)
        nearer = tokens - self.sentences[below] < self.sentences[above] - tokens
        both = np.stack([np.where(nearer, below, above), np.where(nearer, above, below)])
        boundaries = np.minimum(self.stream.positions(self.sentences[both]), total)
        return np.where(turned, total - boundaries, boundaries)

    def _with_marks(
        self,
        ids: NDArray[np.int64],
        sources: NDArray[np.int64],
        in_second: NDArray[np.bool_],
        turned: NDArray[np.bool_],
        follows: NDArray[np.bool_],
    ) -> Examples:
        """Rows with [SEP] after A, and [SEP] and [CLS] after B; segments are 0 and 1, each with its [SEP], then 2."""
        tokenizer, length = self.stream.tokenizer, self.config.length
        column = np.arange(length)
        ends = (~in_second).sum(1, keepdims=True)  # where the first [SEP] stands
        from_text = (column != ends) & (column < length - 2)
        marked = np.full((len(ids), length), tokenizer.separator, np.int64)
        marked[from_text] = ids.ravel()
        marked[:, -1] = tokenizer.start
        origin = np.full((len(ids), length), -1, np.int64)
        origin[from_text] = sources.ravel()
        segments = (column > ends).astype(np.int64)
        segments[:, -1] = 2
        row: Row[NDArray[Any]] = Row(
            marked,
            segments,
            documents=np.ones((len(ids), length), np.int32),
            backwards=turned if self.directions == 2 else None,
            follows=follows,
        )
        return Examples(row, origin, reuse=self.config.reuse)
