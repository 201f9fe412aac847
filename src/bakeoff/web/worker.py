"""The thread of one model: similar requests are answered together, and streamed texts are written in turns.

A model belongs to one thread. The thread takes the request that has waited longest, and with it as many others as fit
into a batch and ask for the same verb with the same settings. Between two batches each text that is written piece by
piece grows by one piece. So a request waits only for those before it, and a long text holds up nobody.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from bakeoff.inference.text_files import Tidier
from bakeoff.web.problems import busy, late

Work = Callable[[Sequence[Any]], Sequence[Any]]
"""A function from the items of a batch to an answer for each item, in the same order."""

TIDY = 2048
"""Number of texts after which unused memory is returned to the system."""


class Job:
    """A request that waits for its answers.

    Args:
        key: requests with equal keys may go through the model together.
        items: the items of a batch that the request adds, such as its texts.
        work: the function that answers; the same for all requests with that key.
        seconds: the time from now on after which the request is dropped.
    """

    def __init__(self, key: Hashable, items: Sequence[Any], work: Work, seconds: float) -> None:
        self.key, self.items, self.work = key, items, work
        self.deadline = time.monotonic() + seconds
        self.seconds = seconds
        self.answers: Future[list[Any]] = Future()


class Stream:
    """A text that is written piece by piece.

    Args:
        pieces: a function that makes the iterator over pieces; called in the model's thread.
        deliver: a function that is called in the same thread with each piece, and with None or an error at the end.
        seconds: the time from now on after which the text ends with an error.
    """

    def __init__(
        self, pieces: Callable[[], Iterator[str]], deliver: Callable[[str | BaseException | None], None], seconds: float
    ) -> None:
        self.pieces, self.deliver = pieces, deliver
        self.deadline = time.monotonic() + seconds
        self.seconds = seconds
        self.stopped = threading.Event()
        """Set once nobody reads the text any more."""
        self._iterator: Iterator[str] | None = None

    def advance(self) -> bool:
        """Write one piece, and return whether more may follow."""
        end: BaseException | None = None
        try:
            if not self.stopped.is_set():
                if time.monotonic() > self.deadline:
                    raise late(self.seconds)
                if self._iterator is None:
                    self._iterator = self.pieces()
                self.deliver(next(self._iterator))
                return True
        except StopIteration:
            pass
        except BaseException as error:
            end = error
        self.end(end)
        return False

    def end(self, error: BaseException | None) -> None:
        """Close the iterator, which may not be exhausted, and tell the reader that the text has ended."""
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()
        self.deliver(error)


class Worker:
    """The thread of a model, with its queue.

    Args:
        name: the model's name.
        queue: largest number of waiting requests.
        streams: largest number of texts that are written piece by piece at the same time.
        together: largest number of items in a batch, unless a single request has more.
    """

    def __init__(self, name: str, queue: int, streams: int, together: int) -> None:
        self.name, self._longest, self._most, self._together = name, queue, streams, together
        self._waiting: deque[Job] = deque()
        self._streams: list[Stream] = []
        self._changed = threading.Condition()
        self._closed = False
        self.batches = 0
        """The number of batches that went through the model so far."""
        self.requests = 0
        """The number of requests in these batches."""
        self._tidier = Tidier(TIDY)
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def submit(self, job: Job) -> None:
        """Put a request at the end of the queue.

        Raises:
            Problem: too many requests wait already, or the server stops (503).
        """
        with self._changed:
            self._refuse_when_closed()
            if len(self._waiting) >= self._longest:
                self._drop_late()
            if len(self._waiting) >= self._longest:
                raise busy(f"{self.name}: {self._longest} requests wait already")
            self._waiting.append(job)
            self._changed.notify()

    def stream(self, stream: Stream) -> None:
        """Begin to write a text piece by piece.

        Raises:
            Problem: the most texts allowed are being written already, or the server stops (503).
        """
        with self._changed:
            self._refuse_when_closed()
            if len(self._streams) >= self._most:
                raise busy(f"{self.name}: the most texts at a time, {self._most}, are being written already")
            self._streams.append(stream)
            self._changed.notify()

    def close(self, seconds: float) -> None:
        """Refuse new requests, answer waiting ones with 503, and wait up to `seconds` for those in the model."""
        with self._changed:
            self._closed = True
            left, streams = list(self._waiting), list(self._streams)
            self._waiting.clear()
            self._changed.notify()
        for job in left:
            if job.answers.set_running_or_notify_cancel():
                job.answers.set_exception(busy("the server stops"))
        for stream in streams:
            stream.stopped.set()
        self._thread.join(seconds)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise busy("the server stops")

    def _drop_late(self) -> None:
        """Drop requests from the queue whose clients have gone or whose time is over."""
        now = time.monotonic()
        left: deque[Job] = deque()
        for job in self._waiting:
            if job.answers.cancelled():
                continue
            if now <= job.deadline:
                left.append(job)
            elif job.answers.set_running_or_notify_cancel():
                job.answers.set_exception(late(job.seconds))
        self._waiting = left

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._streams or self._closed):
                    self._changed.wait()
                if self._closed and not self._streams:
                    return
                jobs = self._next()
                streams = list(self._streams)
            if jobs:
                self._answer(jobs)
            ended = [stream for stream in streams if not stream.advance()]
            if ended:
                with self._changed:
                    self._streams = [stream for stream in self._streams if stream not in ended]

    def _next(self) -> list[Job]:
        """The oldest request whose client still waits, and the requests that share its batch."""
        self._drop_late()
        chosen: list[Job] = []
        others: deque[Job] = deque()
        count = 0
        while self._waiting:
            job = self._waiting.popleft()
            if chosen and (job.key != chosen[0].key or count + len(job.items) > self._together):
                others.append(job)
            elif job.answers.set_running_or_notify_cancel():
                chosen.append(job)
                count += len(job.items)
        self._waiting = others
        return chosen

    def _answer(self, jobs: Sequence[Job]) -> None:
        items = [item for job in jobs for item in job.items]
        try:
            answers = list(jobs[0].work(items))
        except BaseException as error:
            if len(jobs) == 1:
                jobs[0].answers.set_exception(error)
                return
            for job in jobs:  # the mistake of one request must not fail the others, so each is tried alone
                self._answer([job])
            return
        self.batches += 1
        self.requests += len(jobs)
        start = 0
        for job in jobs:
            job.answers.set_result(answers[start : start + len(job.items)])
            start += len(job.items)
        self._tidier.add(len(items))
