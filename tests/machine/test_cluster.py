"""Addresses at which no cluster of Ray answers: one line, and at once."""

import contextlib
import os
import socketserver
import threading
import time
from types import SimpleNamespace

import pytest

from bakeoff.errors import UserError
from bakeoff.machine.cluster import cluster, require_answer


@contextlib.contextmanager
def listening(answer):
    """The address of a server that sends `answer` when something was sent to it."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(100)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield "{}:{}".format(*server.server_address)
        server.shutdown()


SETTINGS = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0]) + bytes([0, 3, 0, 0, 0, 100])
"""The first frame of a server of gRPC: at most 100 streams."""


@pytest.mark.parametrize("answer", [b"", b"\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_a_server_of_something_else_is_refused_in_one_line(answer, monkeypatch):
    with listening(answer) as address:
        began = time.monotonic()
        with pytest.raises(UserError, match=r"no cluster answers \(what listens there is not Ray\)") as caught:
            require_answer(address)
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(UserError, match="--ray auto: no cluster answers"):
            require_answer("auto")
        assert time.monotonic() - began < 5
    assert str(caught.value).startswith(f"--ray {address}: ")
    assert "\n" not in str(caught.value)


def test_a_server_of_grpc_is_not(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with listening(SETTINGS) as address:
        require_answer(address)
        require_answer(f"ray://{address}")
    require_answer("local")
    require_answer("auto")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999999999999999999", "nowhere.invalid:6379"])
def test_nothing_answers(address):
    with pytest.raises(UserError, match=f"--ray {address}: no cluster answers"):
        require_answer(address)


@pytest.mark.parametrize("address", ["here", "127.0.0.1:", "127.0.0.1:head"])
def test_what_is_no_address(address):
    with pytest.raises(UserError, match="expected local, auto or HOST:PORT"):
        require_answer(address)


def test_what_a_library_says_by_itself_is_dropped_with_its_error(capfd):
    class Library:
        """As Ray, whose C++ part warns before Python hears of the error."""

        exceptions = SimpleNamespace(RayError=KeyError)

        def __init__(self, error):
            self.error = error

        def init(self, *_, **__):
            os.write(2, b"rpc_client.h:153: Failed to connect\n")
            if self.error is not None:
                raise self.error

        def shutdown(self):
            pass

    with (
        pytest.raises(UserError, match=r"--ray local: no cluster answers \(gone\)"),
        cluster(Library(OSError("gone")), "local"),
    ):
        pass
    assert capfd.readouterr().err == ""
    with cluster(Library(None), "local"):
        pass
    assert capfd.readouterr().err == "rpc_client.h:153: Failed to connect\n"
