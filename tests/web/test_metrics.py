"""The page of counts for Prometheus, read by Prometheus' own parser."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

import bakeoff
from bakeoff.web.metrics import OTHER, SECONDS, Metrics
from tests.untrained_runs import untrained
from tests.web.fakes import FakeModel
from tests.web.test_others import head, raw_socket, wait_until


def samples(text):
    """The values by name and labels, of metrics that say their type and what they are."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.values()))
            assert key not in found
            found[key] = sample.value
    return found


def read(asked):
    status, headers, body = asked.raw("GET", "/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return samples(body.decode())


def test_requests_are_counted_by_path_and_status(server):
    asked = server({"one": FakeModel(), 'a "b"\\c\nd': FakeModel()})
    for texts in (["a"], ["b"], []):
        asked.post("score", model="one", texts=texts)
    for path in ("/nothing", "/../x", "/health"):
        asked.raw("GET", path)
    asked.raw("GET", "/models", headers={"Host": "elsewhere"})
    found = read(asked)
    assert found["bakeoff_requests_total", "/score", "200"] == 2
    assert found["bakeoff_requests_total", "/score", "422"] == 1
    assert found["bakeoff_requests_total", "404", OTHER] == 2
    assert found["bakeoff_requests_total", "/health", "200"] == 1
    assert found["bakeoff_requests_total", "/models", "421"] == 1
    assert found["bakeoff_model_batches_total", "one"] == 2
    assert found["bakeoff_model_batches_total", 'a "b"\\c\nd'] == 0
    assert found["process_resident_memory_bytes",] > 1 << 20
    assert read(asked)["bakeoff_requests_total", "/metrics", "200"] == 1


def test_times_are_a_histogram():
    metrics = Metrics(["/a"], {})
    for seconds in (0.0, 0.005, 0.006, 61.0):
        metrics.add("/a", 200, seconds)
    metrics.add("/a", None, 3.0)
    found = samples(metrics.text().decode())
    below = [found["bakeoff_request_seconds_bucket", *sorted(("/a", str(bound)))] for bound in SECONDS]
    assert below == [2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4]
    assert found["bakeoff_request_seconds_bucket", *sorted(("/a", "+Inf"))] == 5
    assert found["bakeoff_request_seconds_count", "/a"] == 5
    assert found["bakeoff_request_seconds_sum", "/a"] == pytest.approx(64.011)
    assert found["bakeoff_requests_total", "/a", "499"] == 1  # the client had gone


def test_what_waits_and_what_a_model_does(server):
    model = FakeModel()
    asked = server({"one": model})
    model.gate.clear()
    body = json.dumps({"texts": ["a"]}).encode()
    clients = []
    for number in range(3):
        clients.append(raw_socket(asked.port, head("score", len(body), asked.port), body))
        wait_until(lambda: model.batches)
        wait_until(lambda number=number: asked.models["one"].worker.waiting == number)
    assert read(asked)["bakeoff_requests_waiting", "one"] == 2
    model.gate.set()
    for client in clients:
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.close()
    wait_until(lambda: asked.models["one"].worker.busy_seconds > 0)
    found = read(asked)
    assert found["bakeoff_requests_waiting", "one"] == 0
    assert found["bakeoff_model_busy_seconds_total", "one"] > 0


def test_tokens_of_a_run_are_counted(corpus, tmp_path):
    run = bakeoff.load(untrained("gpt-tiny", corpus, tmp_path / "run"), "cpu")
    run.generate(["The", "A"], tokens=1)
    pieces = list(run.stream("The", tokens=5, seed=1))
    assert pieces
    assert 1 <= run.tokens_written <= 7
    before = run.tokens_written
    greedy = run.generate("The", tokens=5, temperature=0)
    own = run.tokens_written - before
    assert (own == 0) == (greedy == "")


def test_a_token_is_asked_for(server):
    assert server({"one": FakeModel()}, token="s" * 16).raw("GET", "/metrics")[0] == 401
