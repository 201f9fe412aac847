"""What the configs of all input formats have in common."""

from typing import ClassVar

from pydantic import Field

from bakeoff.config import Config


class InputBaseConfig(Config):
    """How rows are made of a corpus, before any objective has chosen its targets.

    Its `build(split, tokenizer, running, relation)` lays the format over one part of a corpus. `running` asks for the
    bare text, each row continuing the last one (for causal objectives); `relation` arranges the segments of pairs.
    """

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

    @property
    def continues(self) -> bool:
        """Each row of a batch goes on with the text of the same row of the batch before."""
        return False

    @property
    def directions(self) -> int:
        """2 where half of the rows are the text read from its end."""
        return 1

    @property
    def isolates(self) -> bool:
        """Documents that share a row do not see each other."""
        return False
