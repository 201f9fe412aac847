"""What a recipe says of its tokenizer."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.tokenizer import file as tokenizer_file


class TokenizerConfig(Config):
    """How a tokenizer is trained."""

    kind: Literal["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"] = "wordpiece"
    """wordpiece (BERT), byte_bpe (GPT-2, RoBERTa; round-trips any text), char_bpe (GPT), unigram (ALBERT, XLNet), word
    (whole words and single marks of punctuation, the rest unknown), whitespace (what white space separates, for text
    that is cut into words already, where the unknown token is spelt <unk>) or character."""
    size: int = Field(default=8192, gt=0, le=tokenizer_file.MOST_IDS)
    """Size of the vocabulary with its five special tokens; a small text can give a smaller one."""
    lowercase: bool = False
    """Lower-case the text and strip its accents, as uncased BERT does."""
    end_of_line: bool = False
    """Each line is a sentence, an empty one too, and its end a token; for whitespace and character."""

    @model_validator(mode="after")
    def _tokens_for_the_ends_of_lines(self) -> Self:
        if self.end_of_line and self.kind not in ("whitespace", "character"):
            raise ValueError(f"end_of_line: {self.kind} has no token for it; use kind whitespace or character")
        return self

    def __str__(self) -> str:
        """In words: `wordpiece of 8,192, cased`."""
        lines = ", with ends of lines" if self.end_of_line else ""
        return f"{self.kind} of {self.size:,}, {'lower-cased' if self.lowercase else 'cased'}{lines}"
