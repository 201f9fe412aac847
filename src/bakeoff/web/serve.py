"""`bakeoff serve`: answer HTTP requests with the models of runs."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from bakeoff.errors import Interrupted, UserError
from bakeoff.extras import missing
from bakeoff.regular_files import read_regular
from bakeoff.web.limits import Limits

_TOKEN = re.compile(r"[\x21-\x7e]+")
_LIBRARIES = ("fastapi", "starlette", "uvicorn", "anyio", "h11", "prometheus_client")
_LEAST = 16
"""Least number of characters of a token, so that it cannot be guessed by trying."""


def serve(
    runs: Sequence[str | Path],
    *,
    comparison: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: str | Path | None = None,
    open: bool = False,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "float32",
    limits: Limits | None = None,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Answer requests for runs until SIGINT or SIGTERM asks to stop; requests that are being answered are finished.

    Args:
        runs: directories of pre-trained and fine-tuned runs.
        comparison: finished comparison whose report to show.
        host: address to listen on. 127.0.0.1 can be reached only from this machine.
        port: port to listen on; 0 takes any free port.
        token_file: answer only clients that send the token in this file.
        open: answer everybody who can reach the host, without a token.
        device: auto, cpu, cuda or mps.
        precision: the precision of products: float32; bfloat16, in which there is neither `/score` nor weights of
            tokens; or auto, which is bfloat16 where the device multiplies it faster.
        limits: the bounds for requests.
        progress: called with the address once requests are answered.

    Raises:
        UserError: there is no such run or comparison; others reach the host and there is no token; the port is taken;
            the libraries of `web` are not installed.
        Interrupted: a signal has stopped the server.
    """
    try:
        from bakeoff.web.app import application
        from bakeoff.web.server import LOOPBACK_NAMES, bound, is_loopback, run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise missing("serve needs FastAPI, uvicorn and prometheus_client", "web") from None
    from bakeoff.using.loaded_run import load
    from bakeoff.web.comparison_pages import ComparisonPages
    from bakeoff.web.served import opened

    limits = limits or Limits()
    token = None if token_file is None else read_token(Path(token_file))
    loopback = is_loopback(host)
    if token is None and not (loopback or open):
        raise UserError(f"--host {host}: others reach it; give --token-file FILE, or --open to answer everybody")
    if not runs:
        raise UserError("serve: give at least one run")
    pages = None if comparison is None else ComparisonPages(Path(comparison))
    listening = bound(host, port)
    try:
        models = opened([Path(each) for each in runs], lambda path: load(path, device, precision), limits)
        hosts = LOOPBACK_NAMES | {f"[{host}]" if ":" in host else host} if loopback else None
        app = application(models, limits, token, hosts, pages)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}"

        def ready() -> None:
            if progress is not None:
                names = ", ".join(models)
                progress(f"bakeoff serve: {names} at {address}, the API at {address}/docs; Ctrl-C stops")

        def stopping() -> None:
            for each in models.values():
                each.worker.end_within(limits.closing_seconds)

        number = run(app, listening, limits, ready, stopping)
    finally:
        listening.close()
    if number is not None:
        cut = any(each.worker.cut_off for each in models.values())
        ends = f"took more than {limits.closing_seconds:g} seconds have no answer" if cut else "ran have been answered"
        raise Interrupted(f"stopped; requests that {ends}", number)


def read_token(path: Path) -> str:
    """Read a token from the only line of a file.

    Raises:
        UserError: the file does not hold one line of enough printable ASCII characters.
        OSError: the file cannot be read.
    """
    try:
        token = read_regular(path, 1 << 16).decode().strip()
    except UnicodeDecodeError:
        token = ""
    if not _TOKEN.fullmatch(token) or len(token) < _LEAST:
        raise UserError(
            f"--token-file {path}: wanted is one line of at least {_LEAST} printable ASCII characters without spaces"
        )
    return token
