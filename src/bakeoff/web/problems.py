"""Answers to requests that fail: a status and one line."""

from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException
from fastapi import Request as HttpRequest
from pydantic import BaseModel
from starlette.exceptions import HTTPException as RoutingError

from bakeoff.display.text import visible
from bakeoff.errors import UserError
from bakeoff.web.plain import JsonLine

LONGEST = 2000
"""The most characters of a message, which may repeat what a client has sent."""


class Error(BaseModel):
    """The body of an answer to a request that failed."""

    error: str


STATUSES = {
    400: "The body is no JSON, or ended too early.",
    401: "No token, or a wrong one.",
    403: "A page of another server asked.",
    404: "There is no such model.",
    408: "The body arrived too slowly.",
    413: "The body is too long.",
    415: "The body is not declared as JSON.",
    421: "Host is no name of this server.",
    422: "The body asks for what the verb, the model or the server's limits do not allow.",
    500: "The server failed.",
    503: "Too many requests wait; Retry-After says when to try again.",
    504: "There was no answer in time.",
}
"""The meaning of each status of a failed request."""


def described(token: bool) -> dict[int | str, dict[str, Any]]:
    """The answers to failed requests, as FastAPI documents them; `token`: whether requests have to bear one."""
    return {code: {"model": Error, "description": what} for code, what in STATUSES.items() if token or code != 401}


class Problem(HTTPException):
    """A request that is refused, or that cannot be answered.

    Args:
        status: the HTTP status.
        message: one line: what, where, what to do.
        headers: further headers of the answer, such as Retry-After.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        shown = visible(message)
        super().__init__(status, shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}...", headers)


def busy(what: str) -> Problem:
    """The problem of a server without room for another request (503)."""
    return Problem(503, f"{what}; try again in a moment", {"Retry-After": "1"})


def stopping() -> Problem:
    """The problem of a request that a server which is to stop does not answer any more (503)."""
    return busy("the server stops")


def late(seconds: float) -> Problem:
    """The problem of a request that took longer than `seconds` (504)."""
    return Problem(504, f"no answer within {seconds:g} seconds; send fewer or shorter texts, or try again")


async def answer(http: HttpRequest, error: Exception) -> JsonLine:
    """The answer to a request that ended in an error; the connection is closed, with the rest of a body unread."""
    match error:
        case Problem():
            problem = error
        case RoutingError():
            what = "there is nothing here; /docs says what there is" if error.status_code == 404 else "wrong method"
            where = f"{http.scope['method']} {http.scope['path'][:200]}"
            problem = Problem(error.status_code, f"{where}: {what}", error.headers)
        case UserError():
            problem = Problem(422, str(error))
        case _:
            problem = Problem(500, f"the server failed ({type(error).__name__}); its own output says more")
    return JsonLine(
        {"error": problem.detail}, problem.status_code, headers={**(problem.headers or {}), "Connection": "close"}
    )
