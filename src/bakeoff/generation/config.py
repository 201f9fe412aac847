"""Settings of generation."""

from pydantic import Field, model_validator

from bakeoff.config import LARGEST, Config

LENGTH_PENALTY = 0.6
"""The length penalty of a search where none is given (Wu et al. 2016, arXiv:1609.08144, section 7: 0.6 to 0.7)."""


def require_one_way(
    temperature: float, top_k: int | None, top_p: float, beams: int | None, length_penalty: float
) -> None:
    """Refuse settings of sampling beside those of a search, of which one kind would have no effect.

    Raises:
        ValueError: both are given.
    """
    if beams is not None and (top_k is not None or top_p < 1 or temperature not in (0, 1)):
        raise ValueError("beams: a search does not sample; leave temperature, top_k and top_p out")
    if beams is None and length_penalty != LENGTH_PENALTY:
        raise ValueError("length_penalty: it is of a search, and sampling has none; give beams, too")


class GenerationConfig(Config):
    """How the tokens of a generated text are chosen."""

    tokens: int = Field(default=100, gt=0)
    """Largest number of tokens to write; the model may end the text earlier."""
    temperature: float = Field(default=1.0, ge=0)
    """Temperature of sampling: below 1 likely tokens become likelier; 0 always takes the most likely token (greedy)."""
    top_k: int | None = Field(default=None, gt=0)
    """Sample from this number of most likely tokens; None: from all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the fewest most likely tokens whose probabilities add up to at least this share; with `top_k`, of
    what these tokens have together."""
    beams: int | None = Field(default=None, gt=0, le=1000)
    """Search for the likeliest text with this number of candidates (beam search) instead of sampling; 1 always takes
    the most likely token; None: sample."""
    length_penalty: float = Field(default=LENGTH_PENALTY, ge=0)
    """How much the beam search favours long texts: a text's score is its log-probability divided by
    ((5 + length) / 6) to this power."""
    seed: int = Field(default=0, ge=0, le=LARGEST)
    """Seed of sampling."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken, without sampling."""
        return self.temperature == 0 or self.beams == 1

    @model_validator(mode="after")
    def _one_way(self) -> "GenerationConfig":
        require_one_way(self.temperature, self.top_k, self.top_p, self.beams, self.length_penalty)
        return self
