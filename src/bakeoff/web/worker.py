"""The thread of one model: similar requests are answered together, and streamed texts are written in turns.

A model belongs to one thread. The thread takes the request that has waited longest, and with it as many others as fit
into a batch and ask for the same verb with the same settings. Between two batches each text that is written piece by
piece grows by one piece. So a request waits only for those before it, and a long text holds up nobody. What nobody
waits for any more, because its time is over or its client has gone, is not worked on to its end: the model looks
between its layers (`bakeoff.signals`).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from bakeoff.reading.text_files import Tidier
from bakeoff.signals import stopped_by
from bakeoff.web.problems import Problem, busy, late, stopping

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
        self.gone = threading.Event()
        """Set once nobody waits for the answers any more."""

    def over(self) -> bool:
        """Whether the answers would come too late."""
        return self.gone.is_set() or time.monotonic() > self.deadline


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

    def advance(self, look: Callable[[], None]) -> bool:
        """Write one piece, and return whether more may follow; `look` raises an error where the worker is to end."""
        end: BaseException | None = None

        def still_read() -> None:
            look()
            if self.stopped.is_set():
                raise _Unread
            if time.monotonic() > self.deadline:
                raise late(self.seconds)

        try:
            with stopped_by(still_read):
                still_read()
                if self._iterator is None:
                    self._iterator = self.pieces()
                piece = next(self._iterator, None)
            if piece is not None:
                self.deliver(piece)
                return True
        except _Unread:
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


class _Unread(Exception):
    """Nobody reads the text any more."""


class ModelThread(threading.Thread):
    """The thread of a model."""


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
        self._end: float | None = None
        self.busy_seconds = 0.0
        """Seconds that the model has worked so far."""
        self.batches = 0
        """The number of batches that went through the model so far."""
        self.requests = 0
        """The number of requests in these batches."""
        self.cut_off = 0
        """The number of batches, waiting requests and texts that were not finished because the server stopped."""
        self._tidier = Tidier(TIDY)
        self._thread = ModelThread(target=self._run, name=f"model {name}", daemon=True)
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

    def end_within(self, seconds: float) -> None:
        """Go on for some seconds, after which what waits and what is in the model is answered with 503."""
        self._end = time.monotonic() + seconds

    def close(self, seconds: float) -> None:
        """Refuse new requests, answer all that are not done with 503, and wait up to `seconds` for the thread's end."""
        self.end_within(0)
        with self._changed:
            self._closed = True
            left, streams = list(self._waiting), list(self._streams)
            self._waiting.clear()
            self.cut_off += len(left)
            self._changed.notify()
        for job in left:
            if job.answers.set_running_or_notify_cancel():
                job.answers.set_exception(stopping())
        for stream in streams:
            stream.stopped.set()
        self._thread.join(seconds)
        self.cut_off += self._thread.is_alive()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise stopping()

    def _look(self) -> None:
        """Raise the error by which work ends, if the server stops."""
        if self._end is not None and time.monotonic() > self._end:
            self.cut_off += 1
            raise stopping()

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
            begun = time.monotonic()
            if jobs:
                self._answer(jobs)
            ended = [stream for stream in streams if not stream.advance(self._look)]
            self.busy_seconds += time.monotonic() - begun
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

        def wanted() -> None:
            self._look()
            if all(job.over() for job in jobs):
                raise late(jobs[0].seconds)

        try:
            with stopped_by(wanted):
                answers = list(jobs[0].work(items))
        except Problem as problem:  # the time of all of them is over
            for job in jobs:
                job.answers.set_exception(problem)
            return
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
