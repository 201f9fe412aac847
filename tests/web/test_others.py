"""Requests side by side: what goes together, what waits, and that nobody's trouble is another's."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import bakeoff
from bakeoff.signals import go_on
from bakeoff.web.problems import Problem
from bakeoff.web.worker import Job, Stream, Worker
from tests.untrained_runs import untrained
from tests.web.fakes import FakeModel


def wait_until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def raw_socket(port, *parts):
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    for part in parts:
        made.sendall(part)
    return made


def all_of(connection):
    """What arrives until the server closes: the head of an answer and its body may come one after the other."""
    return b"".join(iter(lambda: connection.recv(4096), b""))


def head(verb, length, port, more=b""):
    return (
        b"POST /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
        % (verb.encode(), port, length, more)
    )


def test_requests_that_wait_go_together_and_are_answered_as_alone(server):
    model = FakeModel()
    asked = server({"one": model})
    model.gate.clear()
    with ThreadPoolExecutor(40) as clients:
        first = clients.submit(asked.post, "score", texts=["first"])
        wait_until(lambda: model.batches)
        bodies = [("score", {"texts": ["x" * i] * (1 + i % 3)}) for i in range(1, 13)]
        bodies += [("fill", {"texts": ["[MASK]" * i], "k": 2}) for i in range(1, 7)]
        bodies += [("fill", {"texts": ["[MASK]"], "k": 3}), ("score", {"texts": ["bad"]})]
        waiting = [clients.submit(asked.post, verb, **body) for verb, body in bodies]
        wait_until(lambda: asked.models["one"].worker.waiting == len(bodies))
        model.gate.set()
        together = [each.result() for each in waiting]
        assert first.result()[0] == 200
    sizes = [len(batch) for batch in model.batches]
    assert max(sizes) > 20  # of 12 requests
    assert asked.models["one"].worker.batches < len(bodies)
    assert together == [asked.post(verb, **body) for verb, body in bodies]
    assert [status for status, _ in together] == [200] * (len(bodies) - 1) + [422]


def test_sampled_texts_go_together_and_are_those_of_the_request_alone(server, corpus, tmp_path):
    run = bakeoff.load(untrained("gpt2-tiny", corpus, tmp_path / "run"), "cpu")
    model = FakeModel()
    model.generate = lambda prompts, **settings: (model._through(prompts), run.generate(prompts, **settings))[1]
    asked = server({"one": model})
    model.gate.clear()
    bodies = [{"texts": ["The river", "stone"], "tokens": 8, "seed": seed} for seed in (3, 4, 3)]
    bodies += [{"texts": ["The river"], "tokens": 8, "top_k": 5}, {"texts": ["A"], "tokens": 8, "temperature": 0.0}]
    with ThreadPoolExecutor(8) as clients:
        first = clients.submit(asked.post, "score", texts=["first"])
        wait_until(lambda: model.batches)
        waiting = [clients.submit(asked.post, "generate", **body) for body in bodies]
        wait_until(lambda: asked.models["one"].worker.waiting == len(bodies))
        model.gate.set()
        assert first.result()[0] == 200
        answers = [each.result()[1]["answers"] for each in waiting]
    assert sorted(map(len, model.batches[1:])) == [1, 1, 6]
    for body, answer in zip(bodies, answers, strict=True):
        settings = {name: value for name, value in body.items() if name != "texts"}
        assert answer == run.generate(body["texts"], **settings)
    assert answers[0] == answers[2] != answers[1]


def test_a_full_queue_and_late_answers(server):
    model = FakeModel()
    asked = server({"one": model}, queue=1, seconds=1.5)
    model.gate.clear()
    with ThreadPoolExecutor(3) as clients:
        runs = clients.submit(asked.post, "score", texts=["runs"])
        wait_until(lambda: model.batches)
        waits = clients.submit(asked.post, "score", texts=["waits"])
        wait_until(lambda: asked.models["one"].worker.waiting == 1)
        body = json.dumps({"texts": ["too many"]})
        status, headers, answer = asked.raw("POST", "/score", body, {"Content-Type": "application/json"})
        assert (status, headers["retry-after"]) == (503, "1")
        assert "wait already" in json.loads(answer)["error"]
        assert [runs.result()[0], waits.result()[0]] == [504, 504]
    model.gate.set()
    assert asked.post("score", texts=["after"])[0] == 200
    assert ["waits"] not in model.batches  # nobody waited for it any more


def test_a_text_as_it_is_written(server):
    asked = server({"one": FakeModel()})
    body = json.dumps({"texts": ["x"], "tokens": 3, "stream": True})
    status, headers, events = asked.raw("POST", "/generate", body, {"Content-Type": "application/json"})
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    blocks = events.decode().split("\n\n")
    assert blocks == [
        'data: {"text": " 0"}',
        'data: {"text": " 1"}',
        'data: {"text": " 2"}',
        "event: end\ndata: {}",
        "",
    ]


def test_a_long_text_holds_up_nobody_and_ends_with_its_reader(server):
    model = FakeModel()
    asked = server({"one": model})
    body = json.dumps({"texts": ["slow"], "tokens": 500, "stream": True}).encode()
    reader = raw_socket(asked.port, head("generate", len(body), asked.port), body)
    assert reader.recv(4096).startswith(b"HTTP/1.1 200")
    begun = time.monotonic()
    assert [asked.post("score", texts=["a"])[0] for _ in range(5)] == [200] * 5
    assert time.monotonic() - begun < 4  # the text takes ten seconds
    reader.close()
    wait_until(lambda: not asked.models["one"].worker._streams)
    assert model.written < 400


def test_a_stream_that_takes_too_long_says_so(server):
    asked = server({"one": FakeModel()}, seconds=0.3)
    body = json.dumps({"texts": ["slow"], "tokens": 500, "stream": True})
    _, _, events = asked.raw("POST", "/generate", body, {"Content-Type": "application/json"})
    assert b"event: error\ndata: {" in events
    assert b"no answer within 0.3 seconds" in events


def test_more_streams_than_are_written_at_once(server):
    asked = server({"one": FakeModel()}, streams=1)
    body = json.dumps({"texts": ["slow"], "tokens": 500, "stream": True}).encode()
    with raw_socket(asked.port, head("generate", len(body), asked.port), body) as reader:
        assert reader.recv(4096)
        status, answer = asked.post("generate", texts=["slow"], stream=True)
        assert (status, answer["error"]) == (
            503,
            "one: the most texts at a time, 1, are being written already; try again in a moment",
        )


def test_more_connections_than_the_server_has(server):
    """Who is one too many is told so as every other refusal is, and the place of one who goes is free again."""
    asked = server({"one": FakeModel()}, connections=3)
    held = [asked.connection() for _ in range(3)]
    for connection in held:
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b'{"status": "ok"}\n'
    status, headers, answer = asked.raw("GET", "/health")
    assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
    assert headers["content-type"] == "application/json"
    assert json.loads(answer) == {"error": "the server has 3 connections already; try again in a moment"}
    with raw_socket(asked.port):  # says nothing, and is nobody's trouble
        time.sleep(0.1)
        for connection in held:
            connection.request("GET", "/health")
            response = connection.getresponse()
            assert (response.status, response.read()) == (200, b'{"status": "ok"}\n')
    held.pop().close()
    wait_until(lambda: asked.raw("GET", "/health")[0] == 200)
    for connection in held:
        connection.close()


@pytest.mark.parametrize("seconds", [0.5])
def test_slow_clients(server, seconds):
    """Dribbled bodies and heads are given up, and meanwhile others are answered."""
    asked = server({"one": FakeModel()}, body_seconds=seconds, head_seconds=seconds)
    body_slow = raw_socket(asked.port, head("score", 1000, asked.port), b'{"te')
    head_slow = raw_socket(asked.port, b"POST /score HT")
    silent = raw_socket(asked.port)
    with body_slow, head_slow, silent:
        assert asked.post("score", texts=["a"])[0] == 200
        begun = time.monotonic()
        for part in b'xts": ["':
            body_slow.sendall(bytes([part]))
            time.sleep(0.02)
        answer = all_of(body_slow)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"did not arrive" in answer
        assert head_slow.recv(10) == b""
        assert silent.recv(10) == b""
        assert time.monotonic() - begun < 5
    assert asked.post("score", texts=["a"])[0] == 200


def test_bodies_without_end_and_broken_connections(server):
    model = FakeModel()
    asked = server({"one": model})
    huge = raw_socket(asked.port, head("score", 10**12, asked.port))
    sent = 0
    try:
        while sent < 60 << 20:
            sent += huge.send(b" " * 65536)
    except OSError:
        pass
    assert sent < 60 << 20
    huge.close()
    chunked = head("score", 0, asked.port).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    endless = raw_socket(asked.port, chunked)
    for _ in range(20):
        endless.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
    endless.sendall(b"0\r\n\r\n")
    assert endless.recv(12) == b"HTTP/1.1 413"
    endless.close()
    body = json.dumps({"texts": ["abc"]}).encode()
    model.gate.clear()
    first = raw_socket(asked.port, head("score", len(body), asked.port), body)
    wait_until(lambda: model.batches)
    gone = [raw_socket(asked.port, head("score", len(body), asked.port), body) for _ in range(5)]
    half = [raw_socket(asked.port, head("score", len(body), asked.port), body[:5]) for _ in range(5)]
    wait_until(lambda: asked.models["one"].worker.waiting == 5)
    for each in [first, *gone, *half]:
        each.close()
    nonsense = raw_socket(asked.port, b"\x16\x03\x01\x00 this is no HTTP\r\n\r\n")
    assert nonsense.recv(12) == b"HTTP/1.1 400"
    nonsense.close()
    time.sleep(0.1)
    model.gate.set()
    assert asked.post("score", texts=["abc"])[0] == 200
    assert model.batches == [["abc"], ["abc"]]  # who is gone costs the model nothing


def test_requests_whose_time_is_over_take_up_no_room():
    """As soon as another one comes, not only once the model is free to look at them."""
    begun, gate = threading.Event(), threading.Event()

    def hold(items):
        begun.set()
        gate.wait(10)
        return list(items)

    worker = Worker("one", queue=1, streams=1, together=8)
    try:
        worker.submit(Job("held", [1], hold, seconds=10))
        assert begun.wait(10)
        over = Job("over", [2], hold, seconds=-1)
        worker.submit(over)
        after = Job("after", [3], list, seconds=10)
        worker.submit(after)
        assert over.answers.done()
        with pytest.raises(Problem, match="no answer within"):
            over.answers.result()
        with pytest.raises(Problem, match="wait already"):
            worker.submit(Job("full", [4], list, seconds=10))
        gate.set()
        assert after.answers.result(10) == [3]
    finally:
        gate.set()
        worker.close(10)


def with_queue(items, work, together):
    """A worker that is busy until the event, the event, and jobs with these items, of one key, that wait meanwhile."""
    worker, gate = Worker("one", queue=9, streams=1, together=together), threading.Event()
    worker.submit(Job("busy", ["first"], lambda those: gate.wait(20) and those, 20))
    wait_until(lambda: not worker.waiting)
    jobs = [Job("same", each, work, 20) for each in items]
    for job in jobs:
        worker.submit(job)
    return worker, gate, jobs


@pytest.mark.parametrize(
    ("sizes", "together", "batches"),
    [([3, 3, 3], 5, [3, 3, 3]), ([3, 3, 3], 6, [6, 3]), ([9, 1], 5, [9, 1]), ([2, 4, 2], 5, [4, 4])],
)
def test_a_batch_has_no_more_items_than_it_may_unless_a_request_has(sizes, together, batches):
    """What does not fit waits, and what comes after it and fits does not."""
    seen = []

    def work(items):
        seen.append(len(items))
        return items

    worker, gate, jobs = with_queue([[f"{n}"] * size for n, size in enumerate(sizes)], work, together)
    gate.set()
    assert [job.answers.result(10) for job in jobs] == [[f"{n}"] * size for n, size in enumerate(sizes)]
    assert seen == batches
    worker.close(5)


def test_a_batch_goes_on_for_those_who_still_wait():
    """One of two clients has gone while the model works for both."""

    def work(items):
        jobs[0].gone.set()
        go_on()
        return items

    worker, gate, jobs = with_queue([["a"], ["b"]], work, 8)
    gate.set()
    assert jobs[1].answers.result(10) == ["b"]
    worker.close(5)


def test_readers_of_texts_hear_of_the_end_when_the_worker_closes():
    heard, closed = [[], []], []

    def pieces(number):
        try:
            while True:
                time.sleep(0.002)
                yield "piece"
        finally:
            closed.append(number)

    worker = Worker("one", queue=1, streams=2, together=8)
    for number, said in enumerate(heard):
        worker.stream(Stream(lambda number=number: pieces(number), said.append, 20))
    wait_until(lambda: all(heard))
    worker.close(10)
    assert sorted(closed) == [0, 1]
    for said in heard:
        assert {*said[:-1]} == {"piece"}
        assert said[-1] is None or isinstance(said[-1], Problem)
