"""The API's description in OpenAPI 3.1, made from the classes that read requests."""

import inspect
from importlib import metadata
from typing import Any

from bakeoff.web.limits import Limits
from bakeoff.web.requests import REQUESTS, Request

STATUSES = {
    "400": "The body is no JSON, or ended too early.",
    "401": "No token, or a wrong one.",
    "403": "A page of another server asked.",
    "404": "There is no such model.",
    "408": "The body arrived too slowly.",
    "413": "The body is too long.",
    "415": "The body is not declared as JSON.",
    "421": "Host is no name of this server.",
    "422": "The body asks for what the verb, the model or the server's limits do not allow.",
    "500": "The server failed.",
    "503": "Too many requests wait; Retry-After says when to try again.",
    "504": "There was no answer in time.",
}
"""The meaning of each status of a failed request."""


def document(limits: Limits, token: bool) -> dict[str, Any]:
    """The OpenAPI document of a server, as values for JSON.

    Args:
        limits: the server's bounds, which the document repeats.
        token: whether requests have to bear a token.
    """
    schemas: dict[str, Any] = {
        "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    }
    paths: dict[str, Any] = {
        "/health": {"get": _get("Whether the server runs", free=True)},
        "/models": {"get": _get("The models, what each can do, and the server's limits")},
        "/metrics": {"get": _metrics()},
    }
    for verb, kind in REQUESTS.items():
        schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[kind.__name__] = schema
        paths[f"/{verb}"] = {"post": _post(kind, token)}
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Bakeoff", "version": metadata.version("bakeoff"), "description": _limits(limits)},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if token:
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
    return made


def _limits(limits: Limits) -> str:
    return (
        f"A request holds at most {limits.texts} texts of {limits.characters:,} characters and {limits.body_bytes:,} "
        f"bytes, has at most {limits.tokens} tokens written, and is answered within {limits.seconds:g} seconds or not "
        f"at all."
    )


def _get(summary: str, *, free: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"summary": summary, "responses": {"200": _content("The answer.", {"type": "object"})}}
    return made | {"security": []} if free else made


def _metrics() -> dict[str, Any]:
    done = {"description": "The answer.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"summary": "Counts and times of requests and models, for Prometheus", "responses": {"200": done}}


def _post(kind: type[Request], token: bool) -> dict[str, Any]:
    answers = {"type": "array", "items": {}, "description": f"For each text {kind.gives}."}
    answer = {"type": "object", "properties": {"model": {"type": "string"}, "answers": answers}}
    done = _content("For each text an answer, in the order of the texts.", answer)
    if "stream" in kind.model_fields:
        done["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    error = {"$ref": "#/components/schemas/Error"}
    statuses = {code: text for code, text in STATUSES.items() if token or code != "401"}
    return {
        "summary": kind.does,
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "requestBody": {"required": True, **_json({"$ref": f"#/components/schemas/{kind.__name__}"})},
        "responses": {"200": done, **{code: _content(text, error) for code, text in statuses.items()}},
    }


def _content(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, **_json(schema)}


def _json(schema: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
