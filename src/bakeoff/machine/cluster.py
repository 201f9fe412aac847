"""A Ray cluster: the connection to it, and errors of one line where there is none."""

import contextlib
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from typing import Any

from bakeoff.errors import UserError
from bakeoff.extras import missing

PATIENCE = 10.0
"""Seconds in which a cluster has to answer; Ray itself tries for minutes."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a client says first in HTTP/2, which carries gRPC: the preface, and settings without a value (RFC 9113, 3.4)."""

FRAME_HEADER, SETTINGS_FRAME = 9, 4
"""Bytes of the header of a frame, and the kind of the frame with which a server answers (RFC 9113, 4.1 and 6.5)."""

LONGEST = 400
"""The most characters of Ray's reason in an error."""

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray prints reports of lost machines on standard output, where results are; the reports of ours are lines.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "(?s).*",
}
"""Environment variables of Ray, read when it is imported; the user's own values are kept."""


def imported_ray() -> Any:
    """The module of Ray.

    Raises:
        UserError: it is not installed.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise missing("--ray needs Ray", "ray") from None
    return ray


@contextlib.contextmanager
def cluster(ray: Any, address: str) -> Iterator[None]:
    """A connection to a cluster.

    Args:
        ray: the module of Ray.
        address: `local`: a cluster on this machine is started, and ended with the connection; `auto`: the cluster that
            this machine belongs to; or HOST:PORT.

    Raises:
        UserError: no cluster answers, or it fails while it is used.
    """
    handlers = _handlers()
    try:
        _connect(ray, address)
        _restore(handlers)  # Ray ends this process at SIGTERM, before anything is saved
        yield
    except ray.exceptions.RayError as error:
        raise UserError(
            f"--ray {address}: the cluster failed ({reason(error)}); the same command goes on from here"
        ) from None
    finally:
        ray.shutdown()


def require_answer(address: str) -> None:
    """Refuse the address of a cluster, as `cluster` has it, where nothing speaks gRPC, as Ray does.

    Ray itself would try for minutes, with warnings.

    Raises:
        UserError: it is no address, or what answers there, if anything does, is not Ray.
    """
    where = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    if where in ("local", "auto"):
        return
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        raise UserError(f"--ray {address}: expected local, auto or HOST:PORT")
    try:
        _require_grpc(host, int(port))
    except (OSError, OverflowError, ValueError) as error:
        raise _nothing_answers(address, error) from None


def _require_grpc(host: str, port: int) -> None:
    with socket.create_connection((host, port), PATIENCE) as connection:
        if os.environ.get("RAY_USE_TLS", "0") != "0":
            return
        connection.settimeout(PATIENCE)
        connection.sendall(PREFACE)
        answer = b""
        while len(answer) < FRAME_HEADER and (more := connection.recv(FRAME_HEADER - len(answer))):
            answer += more
    if len(answer) < FRAME_HEADER or answer[3] != SETTINGS_FRAME or any(answer[4:]):
        raise OSError("what listens there is not Ray")


def _connect(ray: Any, address: str) -> None:
    require_answer(address)
    local = {"include_dashboard": False} if address == "local" else {}
    try:
        with _said_if_it_succeeds():
            ray.init(address, log_to_driver=False, logging_level="ERROR", **local)
    except (OSError, ValueError, RuntimeError) as error:
        raise _nothing_answers(address, error) from None


def _nothing_answers(address: str, error: Exception) -> UserError:
    return UserError(
        f"--ray {address}: no cluster answers ({reason(error)}); start one with `ray start --head`; one that "
        "asks for a token wants RAY_AUTH_MODE=token"
    )


@contextlib.contextmanager
def _said_if_it_succeeds() -> Iterator[None]:
    """Keep what libraries write on standard error by themselves until the work has succeeded, else drop it.

    Ray's C++ part writes its warnings there, and whoever has given a wrong address wants one line.
    """
    before = os.dup(2)
    with tempfile.TemporaryFile() as said:
        try:
            os.dup2(said.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(before, 2)
        finally:
            os.close(before)
        said.seek(0)
        with contextlib.suppress(OSError):
            os.write(2, said.read())


def on_node(ray: Any, node: str) -> Any:
    """The strategy by which Ray places a task or an actor on one machine, by Ray's name of it, and nowhere else."""
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)


def cause(error: BaseException) -> BaseException:
    """The error that a task has raised, of which Ray makes its own error."""
    raised = getattr(error, "cause", None)
    return raised if isinstance(raised, BaseException) else error


def reason(error: BaseException) -> str:
    """The message of an error, as the one who raised it wrote it, in one line."""
    error = cause(error)
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _handlers() -> dict[int, Any]:
    return {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}


def _restore(handlers: dict[int, Any]) -> None:
    with contextlib.suppress(ValueError):  # not in the main thread, where Ray sets none
        for each, handler in handlers.items():
            signal.signal(each, handler)
