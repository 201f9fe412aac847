"""What a request may ask for, and how long the server deals with it."""

from pydantic import Field

from bakeoff.config import Config


class Limits(Config):
    """Bounds of a server; beyond them a request has an answer that says so."""

    body_bytes: int = Field(default=1 << 20, gt=0)
    """Bytes of a request's body; more: 413."""
    body_seconds: float = Field(default=10, gt=0)
    """Seconds in which a request's body has to arrive; later: 408."""
    head_seconds: float = Field(default=10, gt=0)
    """Seconds in which a request's first lines have to arrive; later the connection is closed."""
    texts: int = Field(default=64, gt=0)
    """Texts of a request; more: 422."""
    characters: int = Field(default=20_000, gt=0)
    """Characters of a text; more: 422."""
    tokens: int = Field(default=512, gt=0)
    """Tokens that a request may have written for each of its texts; more: 422."""
    beams: int = Field(default=8, gt=0)
    """Candidates of a search; more: 422."""
    seconds: float = Field(default=60, gt=0)
    """Seconds from a request's arrival to its answer; later: 504, and what still waits for the model is dropped."""
    queue: int = Field(default=512, gt=0)
    """Requests that wait for a model; more: 503."""
    streams: int = Field(default=16, gt=0)
    """Texts that a model writes piece by piece at the same time; more: 503."""
    together: int = Field(default=64, gt=0)
    """Texts of different requests that go through a model together."""
    connections: int = Field(default=1000, gt=0)
    """Connections at the same time; more: 503."""
    closing_seconds: float = Field(default=10, ge=0)
    """Seconds that requests have to finish when the server is asked to stop."""
