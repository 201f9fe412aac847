"""The options of `prepare` and `prepare_pairs` that decide on the bytes of a corpus, each declared here alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from bakeoff.config import LARGEST, Config
from bakeoff.errors import at_home, path_of
from bakeoff.preparation.encoding.pair_encoding import LengthFilter
from bakeoff.preparation.planning.selection import SelectionOptions
from bakeoff.reading.aligned import PairOptions
from bakeoff.reading.sources import SourceOptions
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

Texts = str | Path | Sequence[str | Path]


class CorpusOptions(Config):
    """Options for texts and for pairs of texts; all shards of a corpus are made with the same options."""

    tokenizer: TokenizerConfig | Path = TokenizerConfig()
    """Config of the tokenizer to train, or the path of a `tokenizer.json` that is used as it is."""
    tokenizer_sample: int = 50_000_000
    """Largest sample of text to train a tokenizer on, in UTF-8 bytes."""
    seed: int = Field(default=0, ge=0, le=LARGEST)
    """Seed of the tokenizer's sample, of the choice of held-out text or pairs, and of shuffles."""

    @field_validator("tokenizer", mode="before")
    @classmethod
    def _default(cls, value: Any) -> Any:
        return TokenizerConfig() if value is None else value

    @model_validator(mode="after")
    def _sampled(self) -> Self:
        if self.tokenizer_sample < 1:
            raise ValueError(f"tokenizer_sample: {self.tokenizer_sample} is not a number of bytes above 0")
        return self

    def fields_of(self, config: type[Config]) -> dict[str, Any]:
        """The values of all fields of a base class of these options, by name, in the order of that class."""
        return {name: getattr(self, name) for name in config.model_fields}


class PrepareOptions(SourceOptions, SelectionOptions, CorpusOptions):
    """Options for texts."""

    validation: float | list[str] = 0.01
    """Share of the text to hold out, as whole documents, or as runs within documents if whole documents cannot give the
    share. Or files of held-out text, which keep their order; then all of the other text is trained on."""
    test: list[str] | None = None
    """Files of text for a third split, which training never reads."""
    shuffle_ngrams: int | None = Field(default=None, ge=1)
    """Shuffle n-grams of this number of words within each sentence (1: single words), as a control for word order;
    None: keep the order of words."""

    @field_validator("validation", "test", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if isinstance(value, str | Path):
            return [str(value)]
        return list(map(str, value)) if isinstance(value, Sequence) else value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if isinstance(self.validation, float):
            _require_share(self.validation)
        return self


class PreparePairsOptions(PairOptions, LengthFilter, CorpusOptions):
    """Options for texts and their translations."""

    separate_vocabularies: bool = False
    """Train a tokenizer for each side; false: one for both sides."""
    validation: float = 0.01
    """Share of the pairs to hold out; pairs with the same source stay together."""
    validation_source: tuple[Path, ...] = ()
    """Files of held-out sources, in place of a share; their pairs are all kept, in order and whatever their length."""
    validation_target: tuple[Path, ...] = ()
    """Files of held-out targets, with as many lines as `validation_source`."""
    test_source: tuple[Path, ...] = ()
    """Files of sources for a third split, which training never reads."""
    test_target: tuple[Path, ...] = ()
    """Files of targets for the third split, with as many lines as `test_source`."""

    @field_validator("validation_source", "validation_target", "test_source", "test_target", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return paths_of(value) if isinstance(value, str | Path | Sequence) else value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _require_share(self.validation)
        return self


def paths_of(texts: Texts) -> list[Path]:
    """The paths of one file or of several; `~` stands for the user's home folder.

    Raises:
        UserError: one is something else, such as a number.
    """
    return [at_home(path_of(each, "file")) for each in ([texts] if isinstance(texts, str | Path) else texts)]


def _require_share(value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"validation: {value:g} is not a share between 0 and 1, such as 0.01")
