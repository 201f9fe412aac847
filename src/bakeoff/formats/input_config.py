"""What the configs of all input formats have in common."""

from typing import ClassVar, Literal

from pydantic import Field

from bakeoff.config import PartConfig
from bakeoff.corpus.split import Split
from bakeoff.formats.example import Format
from bakeoff.formats.relation import Relation
from bakeoff.tokenizer.tokenizer import Tokenizer

RowMarks = Literal["ends", "documents", "none"]
"""Special tokens in rows of text: [CLS] and [SEP] at a row's ends and a separator between documents; a separator before
each document, each row continuing the last one; or none, documents following each other like sentences."""


class InputBaseConfig(PartConfig):
    """How rows are made of a corpus, before any objective has chosen its targets."""

    format: str
    """The format's name."""
    length: int = Field(gt=2)
    """T, tokens in a row, special tokens included."""
    pairs: ClassVar[bool] = False
    """Rows are two segments."""
    parallel: ClassVar[bool] = False
    """Rows are targets that have a source each; the corpus holds pairs, not a text."""
    uneven: ClassVar[bool] = False
    """Rows have different lengths that are known beforehand, so that batches can have a number of tokens."""
    start_last: ClassVar[bool] = False
    """[CLS] stands at the end of a row."""

    def build(self, split: Split, tokenizer: Tokenizer, marks: RowMarks, relation: Relation | None) -> Format:
        """The format over one split of a corpus.

        Args:
            split: its tokens.
            tokenizer: that of the corpus.
            marks: the special tokens that rows of text get.
            relation: arranges the segments of pairs and labels them; None: they stay as they are.
        """
        raise NotImplementedError

    @property
    def continues(self) -> bool:
        """Each row of a batch goes on with the text of the same row of the batch before."""
        return False

    @property
    def context_tokens(self) -> int:
        """Tokens at the beginning of a row that are read and not predicted, being predicted in the row before."""
        return 0

    @property
    def remembered_tokens(self) -> int:
        """Tokens of a row behind which the next row begins, which overlaps it; 0: rows do not overlap."""
        return 0

    @property
    def directions(self) -> int:
        """2 where half of the rows are the text read from its end."""
        return 1

    @property
    def isolates(self) -> bool:
        """Documents that share a row do not see each other."""
        return False
