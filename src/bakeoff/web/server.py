"""The server process: listening, bounds on connections, and stopping."""

import asyncio
import ipaddress
import logging
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bakeoff.errors import UserError
from bakeoff.signals import stop_signals
from bakeoff.web.limits import Limits

ANSWERING = 2
"""Seconds, after those that running requests have, in which a model stops and its clients get an answer."""
LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine's own and cannot be reached from another machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at a host and port.

    Args:
        host: an address or name of this machine.
        port: the port; 0: any that is free.

    Raises:
        UserError: the port is taken, or the host is not this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(1024)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: {error.strerror or error}; choose another") from None
    return made


def run(
    app: ASGIApp,
    listening: socket.socket,
    limits: Limits,
    ready: Callable[[], None],
    stopping: Callable[[], None],
) -> int | None:
    """Serve until a signal asks to stop; requests being answered are finished within `limits.closing_seconds`.

    Args:
        app: the application that answers.
        listening: the socket, as `bound` gives it.
        limits: the bounds, of which those of connections and time count here.
        ready: called once requests are answered.
        stopping: called once, when a signal has asked to stop.

    Returns:
        The number of the signal that stopped the server; None: there was none.
    """
    with stop_signals() as received:
        made(app, limits, received, ready, stopping).run([listening])
    return received[0] if received else None


def made(
    app: ASGIApp,
    limits: Limits,
    received: list[int],
    ready: Callable[[], None],
    stopping: Callable[[], None],
) -> uvicorn.Server:
    """The server, which stops once `received` holds a signal's number; the other arguments are those of `run`."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the guard reports errors in one line
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=_bounded(app, limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(limits.closing_seconds) + ANSWERING,
        h11_max_incomplete_event_size=16 * 1024,
    )
    return _Server(config, received, ready, stopping)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        received: list[int],
        ready: Callable[[], None],
        stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._received, self._ready, self._stopping = received, ready, stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller, who notes them in `received`."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or bool(self._received)


def _bounded(app: ASGIApp, limits: Limits) -> type[asyncio.Protocol]:
    """The HTTP protocol with bounds on the number of connections and on the time for a request's first lines.

    Requests on a connection beyond the bound reach the application with `crowded` in their scope, and it refuses them
    in its own format. uvicorn's `limit_concurrency` would answer in plain text and, while one connection is beyond the
    bound, refuse the requests of all others, too.
    """

    async def refused(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "crowded": True}, receive, send)

    class Bounded(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self.app = refused
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unwatch()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._unwatch()
            elif self._timer is None:
                self._timer = self.loop.call_later(limits.head_seconds, self._late)

        def _unwatch(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.abort()

    return Bounded
