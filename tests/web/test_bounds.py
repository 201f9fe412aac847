"""The bounds of what one request may cost: its body, its answer, its time in the model; and names of the host."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from string import printable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bakeoff
from bakeoff.errors import UserError
from bakeoff.json_files import parse_json
from bakeoff.signals import go_on, stopped_by
from bakeoff.web.guard import _name
from bakeoff.web.problems import LONGEST, Problem
from bakeoff.web.requests import Fill
from bakeoff.web.server import LOOPBACK_NAMES
from tests.untrained_runs import untrained
from tests.web.fakes import FakeModel
from tests.web.test_others import head, raw_socket, wait_until


@pytest.mark.parametrize("texts", [[0] * 300_000, [""] * 200_000, [[]] * 200_000])
def test_wrong_texts_beyond_number_are_counted_and_not_told_one_by_one(lasting_server, texts):
    asked = lasting_server({"one": FakeModel()})
    for key in ("texts", "pairs"):
        body = {"texts": ["a"], key: texts}
        status, answer = asked.post("score", **body)
        assert (status, answer) == (422, {"error": f"{key}: {len(texts):,} given; a request may hold 64"})


def test_an_error_names_the_first_problems_and_counts_the_rest():
    with pytest.raises(UserError, match=r"texts\.9: .*; and 54 more$") as error:
        Fill.parse({"texts": [0] * 64}, "body", strict=True)
    assert "texts.10" not in str(error.value)


@pytest.mark.parametrize(
    "body", [{"x" * 900_000: 1}, {"texts": ["a"], "model": "x" * 900_000}, {"texts": ["a"], "pooling": "x" * 900_000}]
)
def test_an_answer_does_not_repeat_a_long_body(lasting_server, body):
    status, answer = lasting_server({"one": FakeModel()}).post("embed", **body)
    assert status in (404, 422)
    assert len(answer["error"]) <= LONGEST + 3


def test_others_are_answered_while_a_body_is_read(lasting_server, monkeypatch):
    asked = lasting_server({"one": FakeModel()})
    reading, enough = threading.Event(), threading.Event()

    def slow(content, where):
        if b"slow" in content:
            reading.set()
            assert enough.wait(20)
        return parse_json(content, where)

    monkeypatch.setattr("bakeoff.web.bodies.parse_json", slow)
    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(asked.post, "score", texts=["slow" * 4500])
        assert reading.wait(20)
        assert asked.post("score", texts=["quick"])[0] == 200
        enough.set()
        assert first.result()[0] == 200


def test_a_model_ends_what_nobody_waits_for(server):
    model = FakeModel()
    asked = server({"one": model}, seconds=0.3)
    assert asked.post("score", texts=["endless"])[0] == 504
    wait_until(lambda: asked.post("score", texts=["next"])[0] == 200)
    body = json.dumps({"texts": ["endless"]}).encode()
    client = raw_socket(asked.port, head("score", len(body), asked.port), body)
    looks = model.looks
    wait_until(lambda: model.looks > looks)
    client.close()
    assert asked.post("score", texts=["next"])[0] == 200


def test_a_batch_ends_with_its_last_request(server):
    model = FakeModel()
    asked = server({"one": model}, seconds=1)
    model.gate.clear()
    with ThreadPoolExecutor(3) as clients:
        first = clients.submit(asked.post, "score", texts=["first"])
        wait_until(lambda: model.batches)
        both = [clients.submit(asked.post, "score", texts=["endless"]) for _ in range(2)]
        wait_until(lambda: asked.models["one"].worker.waiting == 2)
        model.gate.set()
        assert first.result()[0] == 200
        assert [each.result()[0] for each in both] == [504, 504]
    assert asked.post("score", texts=["next"])[0] == 200
    assert [len(batch) for batch in model.batches] == [1, 2, 1]


def test_a_server_that_stops_tells_those_whose_answer_is_not_done(server):
    model = FakeModel()
    asked = server({"one": model})
    with ThreadPoolExecutor(2) as clients:
        runs = clients.submit(asked.post, "score", texts=["endless"])
        wait_until(lambda: model.looks)
        waits = clients.submit(asked.post, "fill", texts=["[MASK]"])
        wait_until(lambda: asked.models["one"].worker.waiting == 1)
        begun = time.monotonic()
        asked.models["one"].worker.close(10)
        assert time.monotonic() - begun < 5
        assert [runs.result()[0], waits.result()[0]] == [503, 503]
    assert asked.models["one"].worker.cut_off == 2


@pytest.mark.parametrize("verb", ["fill", "embed", "score", "generate", "stream"])
def test_a_loaded_run_looks_between_its_layers_whether_it_is_to_go_on(corpus, tmp_path, verb):
    name = "gpt-tiny" if verb in ("generate", "stream") else "bert-tiny"
    run = bakeoff.load(untrained(name, corpus, tmp_path / "run"), "cpu")
    able = {
        "fill": lambda: run.fill(["The [MASK] is old."]),
        "embed": lambda: run.embed(["The river is old."]),
        "score": lambda: run.score(["The river is old."]),
        "generate": lambda: run.generate(["The"], tokens=4),
        "stream": lambda: list(run.stream("The", tokens=4)),
    }[verb]
    looks = 0

    def look():
        nonlocal looks
        looks += 1
        if looks == 3:
            raise Problem(504, "late")

    with stopped_by(look), pytest.raises(Problem):
        able()
    assert looks == 3
    able()  # elsewhere nothing stops it
    assert looks == 3


def test_what_a_context_ends_is_its_own_work():
    go_on()
    with pytest.raises(ZeroDivisionError), stopped_by(lambda: 1 // 0):
        go_on()
    with stopped_by(lambda: 1 // 0), stopped_by(lambda: None):
        go_on()
    other = threading.Thread(target=go_on)
    with stopped_by(lambda: 1 // 0):
        other.start()
        other.join()


NAMES = sorted(LOOPBACK_NAMES)


@given(st.sampled_from(NAMES), st.text(alphabet=printable + "\xe4", min_size=1, max_size=20))
@example("[::1]", ".evil.com")
@example("[::1]", "@evil.com")
@example("localhost", ":80@evil.com")
@example("localhost", ":80.evil.com")
@example("127.0.0.1", ".evil.com:80")
@example("localhost", "\n")
def test_a_name_with_anything_but_a_port_behind_it_is_another(name, more):
    port = more.startswith(":") and more[1:].isascii() and more[1:].isdigit() and len(more) <= 6
    assert (_name(f"{name}{more}") in LOOPBACK_NAMES) == port
    assert _name(f"{more}{name}") not in LOOPBACK_NAMES


@pytest.mark.parametrize("host", [*NAMES, *(f"{name}:8000" for name in NAMES), "LOCALHOST:1"])
def test_names_of_the_host_itself(host):
    assert _name(host) in LOOPBACK_NAMES


@pytest.mark.parametrize("host", ["", "[::1", "::1", "[::1]]", "[[::1]]", "[::1]:", "localhost:", "local host"])
def test_what_is_no_host(host):
    assert _name(host) not in LOOPBACK_NAMES


def test_a_wrong_host_is_refused(lasting_server):
    asked = lasting_server({"one": FakeModel()})
    assert asked.get("/models", Host="[::1].evil.com")[0] == 421
    assert asked.get("/models", Host="[::1]")[0] == 200
