"""The common config of all input formats."""

from typing import ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from bakeoff.config import PartConfig
from bakeoff.corpus.split import Split
from bakeoff.formats.example import Format
from bakeoff.formats.relation import Relation
from bakeoff.tokenizer.tokenizer import Tokenizer

RowMarks = Literal["ends", "documents", "none"]
"""Special tokens in rows of text. ends: [CLS] and [SEP] at a row's ends and a separator between documents; documents: a
separator before each document, each row continuing the last one; none: no special tokens, documents following each
other like sentences.
"""


class InputBaseConfig(PartConfig):
    """The way in which rows are made of a corpus, before any objective has chosen its targets."""

    format: str
    """The format's name."""
    length: int = Field(gt=2)
    """T, the number of tokens in a row, special tokens included."""
    pairs: ClassVar[bool] = False
    """Rows are two segments."""
    parallel: ClassVar[bool] = False
    """Each row is a target with a source; the corpus holds pairs, not a text."""
    uneven: ClassVar[bool] = False
    """Rows have different lengths, known beforehand, so that a batch can be sized in tokens."""
    start_last: ClassVar[bool] = False
    """[CLS] stands at the end of a row."""

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None) -> Format:
        """The format over one split of a corpus.

        Args:
            split: the tokens of the split.
            tokenizer: the tokenizer of the corpus.
            marks: the special tokens that rows of text get.
            relation: arranges the segments of pairs and labels them; None: segments stay as they are.
        """
        raise NotImplementedError

    @property
    def continues(self) -> bool:
        """Each row of a batch continues the text of the same row of the previous batch."""
        return False

    @property
    def cuts_anew(self) -> bool:
        """Rows are cut anew in every epoch."""
        return False

    @property
    def context_tokens(self) -> int:
        """Number of tokens at a row's beginning that are read but not predicted, as the previous row predicts them."""
        return 0

    @property
    def remembered_tokens(self) -> int:
        """Number of tokens of a row before the next row begins, which overlaps it; 0: rows do not overlap."""
        return 0

    @property
    def directions(self) -> int:
        """2 where half of the rows are the text read from its end, else 1."""
        return 1

    @property
    def isolates(self) -> bool:
        """Tokens see only their own document, where documents share a row."""
        return False


class CutConfig(InputBaseConfig):
    """The common fields of formats that cut rows out of the text, and can cut them elsewhere in every epoch."""

    cut_anew: bool = False
    """Rows are cut anew in every epoch but the first: where they may go on with another document, documents follow each
    other in another order, and where they may not, the first row of a document is shorter by a random number of tokens
    where it has the room. For text that is read many times; the rows are still a function of the seed and the step
    alone. Held-out rows stay.
    """

    @property
    @override
    def cuts_anew(self) -> bool:
        return self.cut_anew
