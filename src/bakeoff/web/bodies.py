"""The bodies of requests, within bounds and without a key given twice, before FastAPI validates what they hold."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request as HttpRequest
from fastapi import Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from bakeoff.errors import UserError
from bakeoff.json_files import parse_json
from bakeoff.web.limits import Limits
from bakeoff.web.problems import Problem
from bakeoff.web.requests import Request, limited

_DISCARDED = 32 << 20
"""Largest number of bytes of a too long body that are read and discarded."""
_PATIENCE = 2.0
"""Longest time in seconds for reading bytes that are discarded."""
_AT_ONCE = 1 << 14
"""Largest number of bytes of a body that is parsed while others wait, which takes less than handing it to a thread."""


def bounded(limits: Limits) -> type[APIRoute]:
    """The class of routes whose requests have a body within the limits.

    They raise `Problem` where the body is no JSON (400 or 415), too long (413), too slow (408), or no request of the
    verb (422).
    """

    class Bounded(APIRoute):
        def get_route_handler(self) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()
            kind = self.body_field and self.body_field.field_info.annotation
            if not (isinstance(kind, type) and issubclass(kind, Request)):
                return handler

            async def handle(http: HttpRequest) -> Response:
                content = await _read(http, limits)
                if len(content) <= _AT_ONCE:
                    values = _parsed(content, limits)
                else:
                    values = await asyncio.to_thread(_parsed, content, limits)  # meanwhile others are answered
                try:
                    return await handler(_Read(http, content, values))
                except RequestValidationError as error:
                    mistakes = [{**each, "loc": each["loc"][1:]} for each in error.errors()]
                    raise Problem(422, f"body: {kind.mistakes(mistakes, values)}") from None

            return handle

    return Bounded


class _Read(HttpRequest):
    """A request whose body has been read and parsed."""

    def __init__(self, http: HttpRequest, content: bytes, values: dict[str, Any]) -> None:
        super().__init__(http.scope, http.receive)
        self._content, self._values = content, values

    async def body(self) -> bytes:
        return self._content

    async def json(self) -> dict[str, Any]:
        return self._values


def _parsed(content: bytes, limits: Limits) -> dict[str, Any]:
    try:
        values = parse_json(content, "body")
    except UserError as error:
        raise Problem(400, str(error)) from None
    limited(values, limits)
    return values


async def _read(http: HttpRequest, limits: Limits) -> bytes:
    """The bytes of a body. A too long body is read on for a while, because a client reads no answer while it sends."""
    content_type = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Problem(415, "the body is to be JSON: send Content-Type: application/json")
    parts: list[bytes] = []
    length, most = 0, limits.body_bytes
    ends = asyncio.get_running_loop().time() + limits.body_seconds
    try:
        async with asyncio.timeout_at(ends) as waiting:
            async for part in http.stream():
                if length <= most < length + len(part):
                    parts.clear()
                    waiting.reschedule(min(ends, asyncio.get_running_loop().time() + _PATIENCE))
                length += len(part)
                if length <= most:
                    parts.append(part)
                elif length > most + _DISCARDED:
                    break
    except TimeoutError:
        if length <= most:
            raise Problem(408, f"the body did not arrive within {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise Problem(400, "the body ended too early") from None
    if length > most:
        raise Problem(413, f"the body is longer than {most:,} bytes; send less at once")
    return b"".join(parts)
