"""Bounds of requests, and of their time."""

from pydantic import Field

from bakeoff.config import Config


class Limits(Config):
    """Bounds of a server. A request beyond a bound gets the status named there, and a line that says why."""

    body_bytes: int = Field(default=1 << 20, gt=0)
    """Largest number of bytes of a request's body; more: 413."""
    body_seconds: float = Field(default=10, gt=0)
    """Seconds in which a request's body has to arrive; later: 408."""
    head_seconds: float = Field(default=10, gt=0)
    """Seconds in which a request's first lines have to arrive; later the connection is closed."""
    texts: int = Field(default=64, gt=0)
    """Largest number of texts of a request; more: 422."""
    characters: int = Field(default=20_000, gt=0)
    """Largest number of characters of a text; more: 422."""
    tokens: int = Field(default=512, gt=0)
    """Largest number of tokens that a request may ask a model to write for each text; more: 422."""
    beams: int = Field(default=8, gt=0)
    """Largest number of candidates of a beam search; more: 422."""
    seconds: float = Field(default=60, gt=0)
    """Longest time in seconds from a request's arrival to its answer; later: 504, and a waiting request is dropped."""
    queue: int = Field(default=512, gt=0)
    """Largest number of requests that may wait for one model; more: 503."""
    streams: int = Field(default=16, gt=0)
    """Largest number of texts that one model writes piece by piece at the same time; more: 503."""
    together: int = Field(default=64, gt=0)
    """Largest number of texts of different requests that go through a model together, as one batch."""
    connections: int = Field(default=1000, gt=0)
    """Largest number of connections at the same time; more: 503."""
    closing_seconds: float = Field(default=10, ge=0)
    """Longest time in seconds that running requests have to finish once the server is asked to stop."""
