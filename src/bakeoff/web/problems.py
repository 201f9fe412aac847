"""Answers that say why a request was not answered: a status and one line."""

from collections.abc import Mapping

from bakeoff.display.text import visible


class Problem(Exception):
    """A request that is refused, or that cannot be answered.

    Args:
        status: of HTTP.
        message: one line: what, where, what to do.
        headers: that belong to the status.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = visible(message)
        self.headers = dict(headers or {})


def busy(what: str) -> Problem:
    """The server has as much to do as it takes on."""
    return Problem(503, f"{what}; try again in a moment", {"Retry-After": "1"})


def late(seconds: float) -> Problem:
    """The time for a request is over."""
    return Problem(504, f"no answer within {seconds:g} seconds; send fewer or shorter texts, or try again")
