"""The page with its style and its script, and the API's documentation as a page, all from files of the package."""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from starlette.responses import Response

from bakeoff.report.elements import folded, note, table

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE_POLICY = f"{_POLICY}; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:"
"""The page's Content-Security-Policy: its own script, requests to its own server and that server's report alone."""


def assets() -> dict[str, Response]:
    """The files of the page, by path."""
    style = _asset("bakeoff.report", "page.css") + _asset("bakeoff.web", "page.css")
    page = Response(_asset("bakeoff.web", "page.html"), media_type="text/html")
    page.headers["Content-Security-Policy"] = PAGE_POLICY
    return {
        "/": page,
        "/page.css": Response(style, media_type="text/css"),
        "/page.js": Response(_asset("bakeoff.web", "page.js"), media_type="text/javascript"),
    }


def documentation(described: Mapping[str, Any]) -> Response:
    """The API's description for people: a page without a script, made from the OpenAPI document."""
    style = _asset("bakeoff.report", "page.css") + _asset("bakeoff.web", "docs.css")
    parts = [
        '<nav><a href="/">The page</a> · <a href="/openapi.json">openapi.json</a></nav>',
        f"<h1>{escape(described['info']['title'])}: the API</h1>",
        f"<p>{escape(described['info']['description'])}</p>",
    ]
    for path, methods in described["paths"].items():
        for method, verb in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(verb['summary'])}.</p>")
            parts += _body(described, verb)
            parts += _answers(verb)
    content = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Bakeoff: the API</title><style>{style}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )
    response = Response(content, media_type="text/html")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    response.headers["Content-Security-Policy"] = f"{_POLICY}; style-src 'sha256-{digest}'"
    return response


def _body(described: Mapping[str, Any], verb: Mapping[str, Any]) -> list[str]:
    if "requestBody" not in verb:
        return []
    name = verb["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = described["components"]["schemas"][name]
    required = schema.get("required", [])
    rows = [
        (key, _type(field), "required" if key in required else json.dumps(field.get("default")), field["description"])
        for key, field in schema["properties"].items()
    ]
    return [table(["key", "is", "default", "says"], rows, text=4)]


def _answers(verb: Mapping[str, Any]) -> list[str]:
    responses = dict(verb["responses"])
    done = responses.pop("200")
    notes = [note(f"The answer has model and answers. {done['description']}")] if "requestBody" in verb else []
    statuses = "\n".join(f"{code}  {each['description']}" for code, each in responses.items())
    return [*notes, *([folded("Other statuses", statuses)] if statuses else [])]


def _type(field: Mapping[str, Any]) -> str:
    kinds = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
    return " or ".join(
        f"{each['type']} of {each['items']['type']}s" if "items" in each else each["type"] for each in kinds
    )


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
