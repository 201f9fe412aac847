"""Settings of a recipe's tokenizer."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bakeoff.config import Config
from bakeoff.tokenizer import file as tokenizer_file


class TokenizerConfig(Config):
    """Settings for training a tokenizer."""

    kind: Literal["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"] = "wordpiece"
    """Kind of the tokenizer: wordpiece (BERT), byte_bpe (GPT-2, RoBERTa; round-trips any text), char_bpe (GPT), unigram
    (ALBERT, XLNet), word (whole words and single marks of punctuation, all others unknown), whitespace (words between
    white space, for text that is cut into words already, with the unknown token <unk>) or character."""
    size: int = Field(default=8192, gt=0, le=tokenizer_file.MOST_IDS)
    """Size of the vocabulary with its five special tokens (`prepare --vocabulary`); a small text can give a smaller
    one."""
    lowercase: bool = False
    """Whether to lower-case the text, and strip accents, as uncased BERT does, where fewer than 1 % of the letters have
    one; of more they belong to the writing (umlauts, tones, vowel signs), and stay."""
    end_of_line: bool = False
    """Whether each line, also an empty one, is a sentence whose end is a token; for whitespace and character."""

    @model_validator(mode="after")
    def _tokens_for_the_ends_of_lines(self) -> Self:
        if self.end_of_line and self.kind not in ("whitespace", "character"):
            raise ValueError(f"end_of_line: {self.kind} has no token for it; use kind whitespace or character")
        return self

    def __str__(self) -> str:
        """The settings in words, such as `wordpiece of 8,192, cased`."""
        lines = ", with ends of lines" if self.end_of_line else ""
        return f"{self.kind} of {self.size:,}, {'lower-cased' if self.lowercase else 'cased'}{lines}"
