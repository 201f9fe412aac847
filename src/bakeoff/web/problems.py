"""Answers to requests that fail: a status and one line."""

from collections.abc import Mapping

from bakeoff.display.text import visible

LONGEST = 2000
"""The most characters of a message, which may repeat what a client has sent."""


class Problem(Exception):
    """A request that is refused, or that cannot be answered.

    Args:
        status: the HTTP status.
        message: one line: what, where, what to do.
        headers: further headers of the answer, such as Retry-After.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        shown = visible(message)
        self.message = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
        self.headers = dict(headers or {})


def busy(what: str) -> Problem:
    """The problem of a server without room for another request (503)."""
    return Problem(503, f"{what}; try again in a moment", {"Retry-After": "1"})


def stopping() -> Problem:
    """The problem of a request that a server which is to stop does not answer any more (503)."""
    return busy("the server stops")


def late(seconds: float) -> Problem:
    """The problem of a request that took longer than `seconds` (504)."""
    return Problem(504, f"no answer within {seconds:g} seconds; send fewer or shorter texts, or try again")
