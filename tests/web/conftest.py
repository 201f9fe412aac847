"""Servers of fakes: in this process, with real sockets."""

import threading
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from json import dumps, loads

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")


class Server:
    """A running server, and how to ask it."""

    def __init__(self, port, models):
        self.port, self.models = port, models

    def connection(self):
        return HTTPConnection("127.0.0.1", self.port, timeout=20)

    def raw(self, method, path, body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def get(self, path, **headers):
        status, _, body = self.raw("GET", path, headers=headers)
        return status, loads(body)

    def post(self, verb, _headers=None, **body):
        headers = {"Content-Type": "application/json"} | (_headers or {})
        status, _, answer = self.raw("POST", f"/{verb}", dumps(body), headers)
        return status, loads(answer)


@contextmanager
def running(models, token=None, comparison=None, hosts=None, **limits):
    import asyncio

    from bakeoff.web import server as module
    from bakeoff.web.app import application
    from bakeoff.web.limits import Limits
    from bakeoff.web.served import Served

    limits = Limits(**({"closing_seconds": 1} | limits))
    served = {name: Served(name, model, limits) for name, model in models.items()}
    app = application(served, limits, token, module.LOOPBACK_NAMES if hosts is None else hosts, comparison)
    listening = module.bound("127.0.0.1", 0)
    ready = threading.Event()
    stop = []

    def stopping():
        for each in served.values():
            each.worker.end_within(limits.closing_seconds)

    server = module.made(app, limits, stop, ready.set, stopping)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        assert ready.wait(20)
        yield Server(listening.getsockname()[1], served)
    finally:
        for model in models.values():
            if hasattr(model, "gate"):
                model.gate.set()
        stop.append(2)
        thread.join(20)
        assert not thread.is_alive()
        listening.close()


@pytest.fixture
def server():
    """A factory of servers, stopped after the test, which takes two tenths of a second for each."""
    yield from _servers()


@pytest.fixture(scope="module")
def lasting_server():
    """The same, stopped after the file: for tests that leave a server as it was."""
    yield from _servers()


def _servers():
    with ExitStack() as stack:
        yield lambda models, **options: stack.enter_context(running(models, **options))
