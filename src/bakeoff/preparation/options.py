"""The options of `prepare` that decide on the bytes of a corpus."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from bakeoff.preparation.planning.selection import SelectionOptions
from bakeoff.reading.sources import SourceOptions
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

Texts = str | Path | Sequence[str | Path]


class PrepareOptions(SourceOptions, SelectionOptions):
    """What is made of the texts; all parts of a corpus are made with the same options."""

    tokenizer: TokenizerConfig | Path = TokenizerConfig()
    """What to train, or the path of a `tokenizer.json` that is taken as it is."""
    tokenizer_sample: int = 50_000_000
    """UTF-8 bytes of text to train the tokenizer on at most."""
    validation: float | list[str] = 0.01
    """Share of the text to hold out: whole documents, or runs within them where they cannot give it; or files like
    those of the text, which are held out whole, in their order, and the text is all trained on."""
    test: list[str] | None = None
    """Such files for a third part, which `evaluate` can be asked for."""
    shuffle_ngrams: int | None = None
    """Shuffle the n-grams of so many words within each sentence, 1 all words; see `text/word_order.py`. None: do
    not."""
    seed: int = Field(default=0)
    """Chooses the tokenizer's sample and the held-out text, and shuffles."""

    @field_validator("tokenizer", mode="before")
    @classmethod
    def _default(cls, value: Any) -> Any:
        return TokenizerConfig() if value is None else value

    @field_validator("validation", "test", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            return [str(value)]
        return list(map(str, value)) if isinstance(value, Sequence) else value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if isinstance(self.validation, float) and not 0 < self.validation < 1:
            raise ValueError(f"validation: {self.validation:g} is not a share between 0 and 1, such as 0.01")
        if self.tokenizer_sample < 1:
            raise ValueError(f"tokenizer_sample: {self.tokenizer_sample} is not a number of bytes above 0")
        if self.shuffle_ngrams is not None and self.shuffle_ngrams < 1:
            raise ValueError(f"shuffle_ngrams: {self.shuffle_ngrams} is not a number of words above 0")
        return self

    def part_of(self, config: type[SourceOptions] | type[SelectionOptions]) -> dict[str, Any]:
        """The options that are a config's own, in its order."""
        return {name: getattr(self, name) for name in config.model_fields}
