"""Checks of every request before it is answered: its token, its Host, and its time."""

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Collection

from fastapi import Request as HttpRequest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bakeoff.display.terminal import tell
from bakeoff.web.limits import Limits
from bakeoff.web.metrics import Metrics
from bakeoff.web.problems import Problem, answer, busy, late

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
"""The headers of every answer that has no others of these names, as pages have."""

_ADDED = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
"""A Host header: an address in brackets, a name or an address, and a port."""


class Guard:
    """The outermost middleware, so that its checks and headers apply to all requests.

    Args:
        app: the application behind the guard.
        limits: the bounds, of which the guard uses those of time.
        token: the token that a request has to bear; None: no token is asked for.
        hosts: names that the Host header of a request may have; None: any. A server on a loopback address takes only
            loopback's names, so that no page from elsewhere reaches it under its own name (DNS rebinding).
        free: paths that need no token, such as the page, which holds nothing secret.
        metrics: counts the requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        token: str | None,
        hosts: Collection[str] | None,
        free: Collection[str],
        metrics: Metrics,
    ) -> None:
        self._metrics = metrics
        self._app, self._limits, self._hosts, self._free = app, limits, hosts, free
        self._token = None if token is None else hashlib.sha256(token.encode()).digest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and pass it on; a refusal or failure is answered here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.monotonic(), None

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._answered(scope, receive, noted)
        finally:
            self._metrics.add(scope["path"], status, time.monotonic() - begun)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                names = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _ADDED if each[0] not in names)]
            await send(message)

        most = self._limits.body_seconds + self._limits.seconds + 5  # a client that does not read its answer is dropped
        failure: Exception
        try:
            self._check(scope)
            async with asyncio.timeout(most):
                method = "GET" if scope["method"] == "HEAD" else scope["method"]  # uvicorn leaves the body out
                await self._app({**scope, "method": method}, receive, with_headers)
            return
        except TimeoutError:
            failure = late(most)
        except Problem as error:
            failure = error
        except Exception as error:
            message = " ".join(str(error).split())
            tell(f"bakeoff serve: {scope['method']} {scope['path']}: {type(error).__name__}: {message}")
            failure = error
        if not started:
            response = await answer(HttpRequest(scope), failure)
            await response(scope, receive, with_headers)

    def _check(self, scope: Scope) -> None:
        if scope.get("crowded"):
            raise busy(f"the server has {self._limits.connections:,} connections already")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if self._hosts is not None and _name(headers.get(b"host", "")) not in self._hosts:
            raise Problem(421, f"Host: this server answers to {', '.join(sorted(self._hosts))} alone")
        origin = headers.get(b"origin")
        if origin is not None and scope["method"] != "GET" and origin.partition("://")[2] != headers.get(b"host"):
            raise Problem(403, "Origin: a page of another server may not ask this one")
        if self._token is not None and scope["path"] not in self._free:
            scheme, _, token = headers.get(b"authorization", "").partition(" ")
            digest = hashlib.sha256(token.strip().encode("latin-1")).digest()
            if not hmac.compare_digest(digest, self._token) or scheme.lower() != "bearer":
                what = "a wrong token" if token else "no token"
                raise Problem(401, f"{what}; send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})


def _name(host: str) -> str:
    """The name in a Host header, without the port; empty where it is no host."""
    match = _HOST.fullmatch(host)
    return "" if match is None else match[1].lower()
