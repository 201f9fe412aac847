"""The application: the paths of the server and the answer to each."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from bakeoff.errors import UserError
from bakeoff.web.bodies import read
from bakeoff.web.comparison_pages import ComparisonPages
from bakeoff.web.guard import Guard, error_json
from bakeoff.web.limits import Limits
from bakeoff.web.metrics import MEDIA_TYPE, Metrics
from bakeoff.web.openapi import document
from bakeoff.web.pages import assets, documentation
from bakeoff.web.problems import Problem
from bakeoff.web.requests import REQUESTS, Generate, Request
from bakeoff.web.served import Served, chosen
from bakeoff.web.server import ANSWERING

Handler = Callable[[HttpRequest], Awaitable[Response]]

FREE = ["/", "/page.css", "/page.js", "/health", "/docs", "/openapi.json"]
"""Paths that need no token, because they say nothing of models and texts."""


def application(
    models: Mapping[str, Served],
    limits: Limits,
    token: str | None = None,
    hosts: set[str] | None = None,
    comparison: ComparisonPages | None = None,
) -> ASGIApp:
    """The application, behind its guard.

    Args:
        models: the served models by their names.
        limits: bounds for all requests.
        token: the token that requests have to bear; None: no token is asked for.
        hosts: names that the Host header of a request may have; None: any.
        comparison: the comparison whose report is shown; None: no comparison.
    """
    described = document(limits, token is not None)

    async def health(http: HttpRequest) -> Response:
        return _json({"status": "ok"})

    async def listed(http: HttpRequest) -> Response:
        shown = {"texts": limits.texts, "characters": limits.characters, "tokens": limits.tokens}
        about = [each.about() for each in models.values()]
        return _json({"models": about, "limits": shown, "comparison": comparison is not None})

    async def openapi(http: HttpRequest) -> Response:
        return _json(described)

    routes = [
        Route("/health", health),
        Route("/models", listed),
        Route("/openapi.json", openapi),
        *(Route(f"/{verb}", _verb(kind, models, limits), methods=["POST"]) for verb, kind in REQUESTS.items()),
        *(Route(path, _fixed(response)) for path, response in {**assets(), "/docs": documentation(described)}.items()),
    ]

    async def measured(http: HttpRequest) -> Response:
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    routes.append(Route("/metrics", measured))
    free = list(FREE)
    if comparison is not None:
        routes += comparison.routes()
        free += comparison.free
    metrics = Metrics([each.path for each in routes], models)

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        closing = (asyncio.to_thread(each.worker.close, ANSWERING) for each in models.values())
        await asyncio.gather(*closing)

    return Guard(Router(routes, redirect_slashes=False, lifespan=lifespan), limits, token, hosts, free, metrics)


def _verb(kind: type[Request], models: Mapping[str, Served], limits: Limits) -> Handler:
    async def handle(http: HttpRequest) -> Response:
        request = await read(http, kind, limits)
        served = chosen(models, request)
        if isinstance(request, Generate) and request.stream:
            pieces = served.pieces(request)
            try:  # a refusal has a status of its own
                first = await anext(pieces, None)
            except BaseException:
                await pieces.aclose()
                raise
            return Events(first, pieces)
        work = asyncio.ensure_future(served.answer(request))
        gone = asyncio.ensure_future(_left(http))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise Problem(499, "the client is gone")
            return _json({"model": served.name, "answers": work.result()})
        finally:
            work.cancel()
            gone.cancel()

    return handle


async def _left(http: HttpRequest) -> None:
    """Return once the client has closed the connection, so that the model does not work for nobody."""
    while (await http.receive())["type"] != "http.disconnect":
        pass


class Events(Response):
    """A text as server-sent events: `data: {"text": ...}` for each piece, then `event: end` or `event: error`.

    Args:
        first: the first piece; None: the text is empty.
        pieces: the pieces after the first.
    """

    media_type = "text/event-stream"

    def __init__(self, first: str | None, pieces: AsyncGenerator[str, None]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._first, self._pieces = first, pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send pieces until the text ends or the reader has gone."""
        writing = asyncio.ensure_future(self._write(send))
        gone = asyncio.ensure_future(_left(HttpRequest(scope, receive)))
        try:
            await asyncio.wait([writing, gone], return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            gone.cancel()
            writing.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)
            await self._pieces.aclose()

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def event(data: bytes, name: str = "") -> None:
            kind = f"event: {name}\n".encode() if name else b""
            body = kind + b"data: " + data.strip() + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            if self._first is not None:
                await event(json.dumps({"text": self._first}).encode())
                async for piece in self._pieces:
                    await event(json.dumps({"text": piece}).encode())
            await event(b"{}", "end")
        except (Problem, UserError) as error:
            problem = error if isinstance(error, Problem) else Problem(422, str(error))
            await event(error_json(problem), "error")
        except (ClientDisconnect, OSError):
            return
        await send({"type": "http.response.body", "body": b""})


def _fixed(response: Response) -> Handler:
    async def handle(http: HttpRequest) -> Response:
        return response

    return handle


def _json(values: object) -> Response:
    return Response(json.dumps(values, ensure_ascii=False).encode() + b"\n", media_type="application/json")
