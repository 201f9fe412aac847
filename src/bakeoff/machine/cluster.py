"""A Ray cluster: the connection to it, and errors of one line where there is none."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

from bakeoff.errors import UserError
from bakeoff.extras import missing

PATIENCE = 10.0
"""Seconds in which a cluster has to answer; Ray itself tries for minutes."""

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


def _connect(ray: Any, address: str) -> None:
    try:
        if address not in ("local", "auto"):
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if not (host and port.isdecimal()):
                raise UserError(f"--ray {address}: expected local, auto or HOST:PORT")
            socket.create_connection((host, int(port)), PATIENCE).close()
        local = {"include_dashboard": False} if address == "local" else {}
        ray.init(address, log_to_driver=False, logging_level="ERROR", **local)
    except (OSError, OverflowError, ValueError, RuntimeError) as error:
        raise UserError(
            f"--ray {address}: no cluster answers ({reason(error)}); start one with `ray start --head`; one that "
            "asks for a token wants RAY_AUTH_MODE=token"
        ) from None


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
