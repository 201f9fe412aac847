"""What a server has done so far, as a page for Prometheus."""

from collections.abc import Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bakeoff.web.served import Served

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The type of the page, by which Prometheus knows its format."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of request times, in seconds."""
OTHER = "other"
"""The route of requests for what is not there; their paths are anybody's, and would be labels without end."""
LEFT = 499
"""The status of requests whose client has gone before the answer began."""


class Metrics(Collector):
    """Counts of a server's requests, and of its models.

    Args:
        routes: the paths of the server.
        models: the served models by their names.
    """

    def __init__(self, routes: Collection[str], models: Mapping[str, Served]) -> None:
        self._routes, self._models = frozenset(routes), models
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "bakeoff_requests",
            "Requests by path and status of the answer.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "bakeoff_request_seconds",
            "Seconds from a request to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def add(self, path: str, status: int | None, seconds: float) -> None:
        """Count a request.

        Args:
            path: the path that was asked for.
            status: the status of the answer; None: no answer was begun.
            seconds: the time from the request's first lines to the end of its answer.
        """
        route = path if path in self._routes else OTHER
        self._requests.labels(route, LEFT if status is None else status).inc()
        self._seconds.labels(route).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """The counts of the models, read from their workers."""
        waiting = GaugeMetricFamily("bakeoff_requests_waiting", "Requests that wait for a model.", labels=["model"])
        tokens = CounterMetricFamily("bakeoff_tokens_written", "Tokens that a model has generated.", labels=["model"])
        busy = CounterMetricFamily("bakeoff_model_busy_seconds", "Seconds that a model has worked.", labels=["model"])
        batches = CounterMetricFamily(
            "bakeoff_model_batches",
            "Batches that went through a model, of one request or of several together.",
            labels=["model"],
        )
        for name, each in self._models.items():
            waiting.add_metric([name], each.worker.waiting)
            tokens.add_metric([name], each.model.tokens_written)
            busy.add_metric([name], each.worker.busy_seconds)
            batches.add_metric([name], each.worker.batches)
        yield from (waiting, tokens, busy, batches)

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self._registry)
