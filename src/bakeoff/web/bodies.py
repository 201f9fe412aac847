"""The body of a request, within bounds."""

import asyncio
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest

from bakeoff.errors import UserError
from bakeoff.json_files import parse_json
from bakeoff.web.limits import Limits
from bakeoff.web.problems import Problem
from bakeoff.web.requests import Request, limited

R = TypeVar("R", bound=Request)

_DISCARDED = 32 << 20
"""Largest number of bytes of a too long body that are read and discarded."""
_PATIENCE = 2.0
"""Longest time in seconds for reading bytes that are discarded."""


async def read(http: HttpRequest, kind: type[R], limits: Limits) -> R:
    """The request in the body of an HTTP request.

    Raises:
        Problem: the body is no JSON (400 or 415), too long (413), too slow (408), or no request of the verb (422).
    """
    content_type = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise Problem(415, "the body is to be JSON: send Content-Type: application/json")
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = await _bytes(http, limits.body_bytes)
    except TimeoutError:
        raise Problem(408, f"the body did not arrive within {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise Problem(400, "the body ended too early") from None
    return await asyncio.to_thread(_parsed, body, kind, limits)  # meanwhile others are answered


def _parsed(body: bytes, kind: type[R], limits: Limits) -> R:
    try:
        values = parse_json(body, "body")
    except UserError as error:
        raise Problem(400, str(error)) from None
    limited(values, limits)
    try:
        request = kind.parse(values, "body", strict=True)
    except UserError as error:
        raise Problem(422, str(error)) from None
    request.check(limits)
    return request


async def _bytes(http: HttpRequest, most: int) -> bytes:
    """The bytes of a body. A too long body is read on for a while, because a client reads no answer while it sends."""
    parts, length = [], 0
    try:
        async with asyncio.timeout(None) as waiting:
            async for part in http.stream():
                length += len(part)
                if length <= most:
                    parts.append(part)
                    continue
                parts.clear()
                if waiting.when() is None:
                    waiting.reschedule(asyncio.get_running_loop().time() + _PATIENCE)
                if length > most + _DISCARDED:
                    break
    except TimeoutError:
        if length <= most:
            raise
    if length > most:
        raise Problem(413, f"the body is longer than {most:,} bytes; send less at once")
    return b"".join(parts)
