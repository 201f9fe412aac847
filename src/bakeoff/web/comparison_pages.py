"""Pages of a comparison beside the models: its report, and examples of its tasks to try."""

import csv
import hmac
import io
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.regular_files import open_regular, read_regular
from bakeoff.web.problems import Problem

REPORT = "/comparison/report.html"
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""The Content-Security-Policy of a report, which may come from anyone: a script in it belongs to no site and reaches no
server.

The report's policy, by hashes, applies as well."""
_EXAMPLES = 20
"""Largest number of examples that are shown for a task."""
_CHARACTERS = 2_000
_BEGINNING = 1 << 22
"""Number of bytes of a task's test file that are looked at for examples."""
_MOST = 1 << 28
"""Largest number of bytes of a report."""


class ComparisonPages:
    """The report and the examples of a comparison, read when the server starts: no request reads a file.

    Args:
        folder: a finished comparison.

    Raises:
        UserError: the folder holds no finished comparison.
    """

    def __init__(self, folder: Path) -> None:
        report, results = folder / "report.html", folder / "results.json"
        if not report.is_file() or not results.is_file():
            raise UserError(f"{folder}: no finished comparison: it has no report.html and results.json")
        for file in (report, results):
            if file.is_symlink():  # whatever it leads to would be shown to others
                raise UserError(f"{file}: a link, and what it leads to is not shown; put the file itself there")
        try:
            self._report = read_regular(report, _MOST)
        except OSError as error:
            raise UserError(f"{report}: cannot be read: {error.strerror or error}") from None
        content = read_json(results)
        self._title = str(content.get("title", folder.name))
        tasks = content.get("tasks", [])
        if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
            raise UserError(f"{results}: tasks: not what Bakeoff writes there")
        self._tasks = [_examples(task, folder) for task in tasks]
        self._key = secrets.token_urlsafe(32)  # frames and links cannot bear a token
        self.free = [REPORT]

    def routes(self) -> list[Route]:
        """The paths of the comparison."""
        return [Route("/comparison", self._about), Route(REPORT, self._page)]

    async def _about(self, http: HttpRequest) -> Response:
        return JSONResponse({"title": self._title, "report": f"{REPORT}?key={self._key}", "tasks": self._tasks})

    async def _page(self, http: HttpRequest) -> Response:
        key = http.query_params.get("key", "").encode()
        if not hmac.compare_digest(key, self._key.encode()):
            raise Problem(401, "open the report from the page", {"WWW-Authenticate": "Bearer"})
        headers = {"Content-Security-Policy": REPORT_POLICY, "Cross-Origin-Opener-Policy": "unsafe-none"}
        return Response(self._report, media_type="text/html", headers=headers)


def _examples(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The first lines of a task's test file, if it is a table that lies beside the results."""
    name = str(task.get("name", "task"))
    files = task.get("files")
    files = files if isinstance(files, dict) else {}
    path = folder / Path(str(files.get("test", ""))).name  # no file of another folder
    examples: list[dict[str, str]] = []
    if path.suffix in (".tsv", ".csv") and path.is_file() and not path.is_symlink():
        with open_regular(path) as file:
            lines = io.StringIO(file.read(_BEGINNING).decode("utf-8", "replace"), newline="")
        rows = csv.DictReader(lines, delimiter="\t" if path.suffix == ".tsv" else ",", quoting=csv.QUOTE_NONE)
        with suppress(csv.Error):  # of a cell that is too long to be shown
            for row, _ in zip(rows, range(_EXAMPLES), strict=False):
                examples.append({str(key): str(value)[:_CHARACTERS] for key, value in row.items() if key})
    return {"name": name, "examples": examples}
