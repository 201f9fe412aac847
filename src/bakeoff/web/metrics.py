"""What a server has done so far, in the text format of Prometheus, version 0.0.4."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from bakeoff.resources.device import resident_memory
from bakeoff.web.served import Served

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The type of the page, by which Prometheus knows its format."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of request times, in seconds."""
OTHER = "other"
"""The route of requests for what is not there; their paths are anybody's, and would be labels without end."""
LEFT = 499
"""The status of requests whose client has gone before the answer began."""

Sample = tuple[str, Mapping[str, object], float]
"""The end of a sample's name after the metric's, its labels, and its value."""


class Metrics:
    """Counts of a server's requests, and of its models.

    Requests are counted in the server's one event loop; the models' counts are read from their workers.

    Args:
        routes: the paths of the server.
        models: the served models by their names.
    """

    def __init__(self, routes: Collection[str], models: Mapping[str, Served]) -> None:
        self._routes, self._models = frozenset(routes), models
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(SECONDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._begun = time.time()

    def add(self, path: str, status: int | None, seconds: float) -> None:
        """Count a request.

        Args:
            path: the path that was asked for.
            status: the status of the answer; None: no answer was begun.
            seconds: the time from the request's first lines to the end of its answer.
        """
        route = path if path in self._routes else OTHER
        self._requests[route, LEFT if status is None else status] += 1
        self._buckets[route][bisect_left(SECONDS, seconds)] += 1
        self._seconds[route] += seconds

    def text(self) -> str:
        """The page."""
        workers = {name: each.worker for name, each in self._models.items()}

        def each_model(values: Mapping[str, float]) -> list[Sample]:
            return [("", {"model": name}, value) for name, value in values.items()]

        metrics: list[tuple[str, str, str, Iterable[Sample]]] = [
            ("bakeoff_requests_total", "counter", "Requests by path and status of the answer.", self._counted()),
            ("bakeoff_request_seconds", "histogram", "Seconds from a request to the end of its answer.", self._times()),
            (
                "bakeoff_requests_waiting",
                "gauge",
                "Requests that wait for a model.",
                each_model({name: each.waiting for name, each in workers.items()}),
            ),
            (
                "bakeoff_tokens_written_total",
                "counter",
                "Tokens that a model has generated.",
                each_model({name: each.model.tokens_written for name, each in self._models.items()}),
            ),
            (
                "bakeoff_model_busy_seconds_total",
                "counter",
                "Seconds that a model has worked.",
                each_model({name: each.busy_seconds for name, each in workers.items()}),
            ),
            (
                "bakeoff_model_batches_total",
                "counter",
                "Batches that went through a model, of one request or of several together.",
                each_model({name: each.batches for name, each in workers.items()}),
            ),
            (
                "process_start_time_seconds",
                "gauge",
                "Seconds from 1970 to the server's start.",
                [("", {}, self._begun)],
            ),
        ]
        if (memory := resident_memory()) is not None:
            metrics.append(("process_resident_memory_bytes", "gauge", "Memory of the server.", [("", {}, memory)]))
        return "".join(line for metric in metrics for line in _lines(*metric))

    def _counted(self) -> Iterator[Sample]:
        for (route, status), count in sorted(self._requests.items()):
            yield "", {"route": route, "status": status}, count

    def _times(self) -> Iterator[Sample]:
        for route, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip([*SECONDS, "+Inf"], counts, strict=True):
                total += count
                yield "_bucket", {"route": route, "le": bound}, total
            yield "_sum", {"route": route}, self._seconds[route]
            yield "_count", {"route": route}, total


def _lines(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of one metric."""
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for ending, labels, value in samples:
        given = ",".join(f'{key}="{_escaped(str(label))}"' for key, label in labels.items())
        yield f"{name}{ending}{{{given}}} {value!r}\n" if given else f"{name}{ending} {value!r}\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
