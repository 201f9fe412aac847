"""The application: the paths of the server and the answer to each."""

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Response
from fastapi import Request as HttpRequest
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from fastapi.sse import format_sse_event
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bakeoff.errors import UserError
from bakeoff.extras import version_of
from bakeoff.web import problems
from bakeoff.web.bodies import bounded
from bakeoff.web.comparison_pages import ComparisonPages
from bakeoff.web.guard import Guard
from bakeoff.web.limits import Limits
from bakeoff.web.metrics import LEFT, MEDIA_TYPE, Metrics
from bakeoff.web.pages import assets, documentation
from bakeoff.web.plain import JsonLine
from bakeoff.web.problems import Problem
from bakeoff.web.requests import REQUESTS, Generate, Request
from bakeoff.web.served import Served, chosen
from bakeoff.web.server import ANSWERING

FREE = ["/", "/page.css", "/page.js", "/health", "/docs", "/openapi.json"]
"""Paths that need no token, because they say nothing of models and texts."""

STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
"""FastAPI's description of an answer that may be a stream of events."""


class Answers(BaseModel):
    """The answers to a request."""

    model: str
    answers: list[Any]


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

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        yield
        closing = (asyncio.to_thread(each.worker.close, ANSWERING) for each in models.values())
        await asyncio.gather(*closing)

    app = FastAPI(
        title="Bakeoff",
        version=version_of("bakeoff"),
        description=_described(limits),
        default_response_class=JsonLine,
        docs_url=None,  # FastAPI's pages load their scripts from another server
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((HTTPException, UserError, Exception), problems.answer),
    )

    @app.get("/health", summary="Whether the server runs")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    # The guard looks at tokens, before a body is read; here they are documented.
    app.router.dependencies = [] if token is None else [Depends(HTTPBearer(scheme_name="token", auto_error=False))]
    app.router.route_class = bounded(limits)

    @app.get("/models", summary="The models, what each can do, and the server's limits")
    async def listed() -> dict[str, Any]:
        shown = limits.model_dump(include={"texts", "characters", "tokens"})
        about = [each.about() for each in models.values()]
        return {"models": about, "limits": shown, "comparison": comparison is not None}

    @app.get(
        "/metrics",
        summary="Counts and times of requests and models, for Prometheus",
        response_class=PlainTextResponse,
    )
    async def measured() -> Response:
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    for kind in REQUESTS.values():
        app.post(
            f"/{kind.verb}",
            summary=kind.does,
            description=inspect.cleandoc(kind.__doc__ or ""),
            response_model=Answers,
            response_description=f"For each text {kind.gives}, in the order of the texts.",
            responses=problems.described(token is not None) | (STREAMED if kind.streams else {}),
        )(_verb(kind, models, limits))

    pages = {**assets(), "/docs": documentation(app.openapi())}
    routes = [Route(path, _fixed(response)) for path, response in pages.items()]
    free = list(FREE)
    if comparison is not None:
        routes += comparison.routes()
        free += comparison.free
    app.router.routes += routes
    metrics = Metrics([*app.openapi()["paths"], "/openapi.json", *(each.path for each in routes)], models)
    return Guard(app, limits, token, hosts, free, metrics)


def _described(limits: Limits) -> str:
    return (
        f"A request holds at most {limits.texts} texts of {limits.characters:,} characters and {limits.body_bytes:,} "
        f"bytes, has at most {limits.tokens} tokens written, and is answered within {limits.seconds:g} seconds or not "
        f"at all."
    )


def _verb(
    kind: type[Request], models: Mapping[str, Served], limits: Limits
) -> Callable[[Any, HttpRequest], Awaitable[Response]]:
    async def answered(request: kind, http: HttpRequest) -> Response:  # type: ignore[valid-type]
        asked: Request = request
        asked.check(limits)
        served = chosen(models, asked)
        if isinstance(asked, Generate) and asked.stream:
            pieces = served.pieces(asked)
            try:  # a refusal has its own status
                first = await anext(pieces, None)
            except BaseException:
                await pieces.aclose()
                raise
            return Events(first, pieces)
        async with _while_connected(http):
            return JsonLine({"model": served.name, "answers": await served.answer(asked)})

    return answered


@asynccontextmanager
async def _while_connected(http: HttpRequest) -> AsyncIterator[None]:
    """End the context once the client has closed the connection, so that the model does not work for nobody.

    Raises:
        Problem: the client is gone (499).
    """
    working = asyncio.current_task()
    assert working is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await http.receive())["type"] != "http.disconnect":
            pass
        gone = True
        working.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone and not working.uncancel():
            raise Problem(LEFT, "the client is gone") from None
        raise
    finally:
        watching.cancel()


class Events(StreamingResponse):
    """A text as server-sent events: `data: {"text": ...}` for each piece, then `event: end` or `event: error`.

    Args:
        first: the first piece; None: the text is empty.
        pieces: the pieces after the first.
    """

    media_type = "text/event-stream"

    def __init__(self, first: str | None, pieces: AsyncGenerator[str, None]) -> None:
        super().__init__(self._events(first), headers={"X-Accel-Buffering": "no"})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send pieces until the text ends or the reader has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._pieces.aclose()

    async def _events(self, first: str | None) -> AsyncIterator[bytes]:
        try:
            if first is not None:
                yield format_sse_event(data_str=json.dumps({"text": first}))
                async for piece in self._pieces:
                    yield format_sse_event(data_str=json.dumps({"text": piece}))
            yield format_sse_event(event="end", data_str="{}")
        except (Problem, UserError) as error:
            problem = error if isinstance(error, Problem) else Problem(422, str(error))
            yield format_sse_event(event="error", data_str=json.dumps({"error": problem.detail}))


def _fixed(response: Response) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def handle(http: HttpRequest) -> Response:
        return response

    return handle
