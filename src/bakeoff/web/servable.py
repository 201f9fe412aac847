"""The methods that a model needs to be served."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol


class Servable(Protocol):
    """The methods of the object from `bakeoff.load` that the server uses."""

    @property
    def capabilities(self) -> Any:
        """The verbs that the model can do, of fill, generate, predict, embed, score and weights_of_tokens."""
        ...

    @property
    def recipe(self) -> Any:
        """The run's recipe."""
        ...

    @property
    def tokens_written(self) -> int:
        """Number of tokens that `generate` and `stream` have written so far."""
        ...

    def fill(self, text: Any, k: int = 5) -> Any:
        """The k likeliest tokens, with probabilities, for each mask of each text."""
        ...

    def score(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Any:
        """The log-probability of each text in nats, or of each target in `pairs` given its source in `texts`."""
        ...

    def embed(self, texts: Sequence[str], pooling: Literal["mean", "cls", "last", "max"] | None = None) -> Any:
        """(N, D) vectors of N texts."""
        ...

    def predict(self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, probabilities: bool = False) -> Any:
        """The prediction of a fine-tuned run for each text."""
        ...

    def generate(self, prompts: Sequence[str], **settings: Any) -> Any:
        """The continuation of each prompt."""
        ...

    def stream(self, prompt: str, **settings: Any) -> Iterator[str]:
        """The continuation of one prompt, piece by piece."""
        ...

    def weights_of_tokens(self, text: str, pair: str | None = None) -> Any:
        """How much each token speaks for the predicted label."""
        ...
