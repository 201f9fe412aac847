"""A stand-in for the Hugging Face Hub on this machine: repositories in folders, behind the routes that are asked of it.

What it answers is what the Hub's own API answers (huggingface.co/docs/hub/api), as far as `datasets` and
`huggingface_hub` read it. Two commits of a repository are two folders, of which the later one is the newest.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Repository:
    """A data set or a model."""

    def __init__(self, kind: str, name: str, commits: Sequence[Path], converted: Path | None = None) -> None:
        """`kind` is datasets or models; `commits` are folders with its files, the oldest first.

        `converted` has what the Hub made Parquet of, which it keeps on the branch refs/convert/parquet.
        """
        self.kind, self.name = kind, name
        self.commits = {
            sha1(f"{kind}/{name}/{number}".encode()).hexdigest(): each for number, each in enumerate(commits)
        }
        self.newest = list(self.commits)[-1]
        self.converted = sha1(f"{kind}/{name}/converted".encode()).hexdigest()
        if converted is not None:
            self.commits[self.converted] = converted

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names."""
        if revision == "refs/convert/parquet":
            revision = self.converted
        return self.newest if revision == "main" else revision if revision in self.commits else None

    def files(self, commit: str) -> list[dict[str, Any]]:
        """Its files as a listing has them."""
        folder = self.commits[commit]
        return [
            {
                "type": "file",
                "oid": sha1(path.read_bytes()).hexdigest(),
                "size": path.stat().st_size,
                "path": path.relative_to(folder).as_posix(),
            }
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ]

    def info(self, commit: str) -> dict[str, Any]:
        """What is said of it."""
        siblings = [{"rfilename": each["path"], "size": each["size"]} for each in self.files(commit)]
        return {"id": self.name, "sha": commit, "private": False, "gated": False, "tags": [], "siblings": siblings}


class Hub(ThreadingHTTPServer):
    """The server.

    Attributes:
        asked: method and path of every request.
        unanswered: those that it has no route for.
    """

    def __init__(self, repositories: Sequence[Repository]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.repositories = {(each.kind, each.name): each for each in repositories}
        self.asked: list[str] = []
        self.unanswered: list[str] = []

    @property
    def url(self) -> str:
        """What HF_ENDPOINT is to be."""
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *values: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = [unquote(each) for each in urlsplit(self.path).path.strip("/").split("/")]
        if path[0] == "api" and len(path) >= 4:
            return self._api(path[1], "/".join(path[2:4]), path[4:])
        kind, rest = (path[0], path[1:]) if path[0] in ("datasets", "spaces") else ("models", path)
        if len(rest) > 4 and rest[2] in ("resolve", "raw"):
            return self._file(kind, "/".join(rest[:2]), rest[3], "/".join(rest[4:]))
        return self._unknown()

    def do_POST(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        path = [unquote(each) for each in urlsplit(self.path).path.strip("/").split("/")]
        if path[0] != "api" or path[4:5] != ["paths-info"]:
            return self._unknown()
        found = self._commit(path[1], "/".join(path[2:4]), path[5])
        if found is None:
            return None
        json_given = self.headers.get("Content-Type", "").startswith("application/json")
        wanted = json.loads(body)["paths"] if json_given else parse_qs(body)["paths"]
        return self._json([each for each in found[0].files(found[1]) if each["path"] in wanted])

    def _api(self, kind: str, name: str, rest: list[str]) -> None:
        revision = rest[1] if rest[:1] in (["revision"], ["tree"]) else "main"
        found = self._commit(kind, name, revision)
        if found is None:
            return None
        repository, commit = found
        if not rest or rest[0] == "revision":
            return self._json(repository.info(commit))
        if rest[0] != "tree":
            return self._unknown()
        return self._tree(repository.files(commit), "/".join(rest[2:]))

    def _tree(self, files: list[dict[str, Any]], folder: str) -> None:
        """What is in a folder; with ?recursive=true in those below as well."""
        prefix = f"{folder}/" if folder else ""
        inside = [each for each in files if each["path"].startswith(prefix)]
        if folder and not inside:
            return self._error(404, "EntryNotFound", f"{folder} does not exist")
        folders = {
            each["path"][: len(prefix)] + each["path"][len(prefix) :].split("/")[0]
            for each in inside
            if "/" in each["path"][len(prefix) :]
        }
        recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
        own = [each for each in inside if recursive or "/" not in each["path"][len(prefix) :]]
        return self._json([{"type": "directory", "oid": "0" * 40, "size": 0, "path": each} for each in folders] + own)

    def _file(self, kind: str, name: str, revision: str, file: str) -> None:
        found = self._commit(kind, name, revision)
        if found is None:
            return None
        repository, commit = found
        path = repository.commits[commit] / file
        if not path.is_file():
            return self._error(404, "EntryNotFound", "Entry not found", {"X-Repo-Commit": commit})
        content = path.read_bytes()
        headers = {
            "ETag": f'"{sha1(content).hexdigest()}"',
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        status, whole = 200, len(content)
        if (asked := self.headers.get("Range", "")).startswith("bytes="):
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            first, last = int(begin), min(int(end or whole), whole - 1)
            content, status = content[first : last + 1], 206
            headers["Content-Range"] = f"bytes {first}-{last}/{whole}"
        return self._answer(status, content, headers)

    def _commit(self, kind: str, name: str, revision: str) -> tuple[Repository, str] | None:
        """A repository and its commit; None where an error was answered."""
        repository = self.server.repositories.get((kind, name))
        if repository is None:
            # As the Hub answers those who are not logged in, so that private names are not told from missing ones.
            self._error(401, "RepoNotFound", "Invalid username or password.")
            return None
        commit = repository.commit(revision)
        if commit is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository, commit

    def _unknown(self) -> None:
        self.server.unanswered.append(f"{self.command} {self.path}")
        self._error(404, "", "Not Found")

    def _error(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        own = {"X-Error-Code": code, "X-Error-Message": message} if code else {}
        self._answer(status, json.dumps({"error": message}).encode(), {**own, **(headers or {})})

    def _json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def serving(repositories: Sequence[Repository]) -> Iterator[Hub]:
    """A Hub with these repositories, as long as the block lasts."""
    with Hub(repositories) as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
