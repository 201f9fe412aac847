"""What a model must be able to do to be served."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol


class Servable(Protocol):
    """What `bakeoff.load` gives, as far as it is served."""

    @property
    def capabilities(self) -> Any:
        """Which of fill, generate, predict, embed and score it can do."""
        ...

    @property
    def recipe(self) -> Any:
        """The run's recipe."""
        ...

    def fill(self, text: Any, k: int = 5) -> Any:
        """For each text and mask in it the k likeliest tokens with their probabilities."""
        ...

    def score(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Any:
        """Log-probabilities of texts."""
        ...

    def embed(self, texts: Sequence[str], pooling: Literal["mean", "cls", "last", "max"] = "mean") -> Any:
        """(N, D) vectors of N texts."""
        ...

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Any:
        """What a fine-tuned run says of each text."""
        ...

    def generate(self, prompts: Sequence[str], **settings: Any) -> Any:
        """What follows each prompt."""
        ...

    def stream(self, prompt: str, **settings: Any) -> Iterator[str]:
        """The same of one prompt, piece by piece."""
        ...

    def weights_of_tokens(self, text: str, pair: str | None = None) -> Any:
        """How much each token speaks for the label that is predicted."""
        ...
