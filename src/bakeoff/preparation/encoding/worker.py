"""Encoding on all cores: jobs of text go to worker processes, and their results come back in order.

Workers are plain subprocesses, not `multiprocessing` children: they do not import the main module of the caller (so
that `prepare` works in any script), do not inherit its threads, and end when their input does.
"""

import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple, TypeVar, cast

import numpy as np

from bakeoff.errors import UserError
from bakeoff.reading.pieces import DOCUMENT, PARAGRAPH, STRETCH, TextPiece
from bakeoff.signals import ignore_signals, release_signals, signals_held_back
from bakeoff.text.sentences import split_sentences
from bakeoff.text.word_order import NgramShuffle, shuffle_ngrams
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.workers.environment import worker_environment
from bakeoff.workers.machine import usable_cores

_MOST_WORKERS = 4  # the reader feeds no more, and each takes about 90 MB
_SMALL = 1 << 22  # bytes on disk below which starting workers takes longer than they save

J = TypeVar("J")
"""Type of a job, a text to encode in one go."""
R = TypeVar("R")
"""Type of a job's result; never a str, because a worker sends an error as a str."""


class WorkerDied(UserError):
    """Error: a worker process was killed, most likely for memory."""


class EncodingJob(NamedTuple):
    """Text to encode in one go."""

    first: int
    """Number of the first piece in the whole text."""
    pieces: list[tuple[int, TextPiece]]
    """Pieces in their order, each with its split (0 or 1)."""


class EncodedShare(NamedTuple):
    """One split's share of an encoded job."""

    ids: np.ndarray  # (n,) uint32
    starts: np.ndarray  # (n,) bool, whether each token starts a word
    lengths: np.ndarray  # (s,) int64, tokens of each sentence, none 0
    documents: np.ndarray  # (d,) int64, sentences before which a document opens; s: before the first of the next job
    size: int  # UTF-8 bytes of the text
    words: int  # words between white space, and ends of lines if they are tokens
    stretches: np.ndarray  # (d,) bool, whether each document is another stretch of the split's document before it
    hidden: HiddenText  # counts of unknown tokens, and of the characters that have no other token


def encode_job(
    tokenizer: Tokenizer, job: EncodingJob, shuffle: NgramShuffle | None = None
) -> tuple[EncodedShare, EncodedShare]:
    """Split the pieces of a job into sentences, shuffle their words if `shuffle` is given, and encode split by split.

    Paragraphs within a document are joined by a line end, which opens the first sentence of the later paragraph. If the
    tokenizer has a token for the end of a line, each piece is a line and a sentence, and ends with that token.
    """
    sentences: tuple[list[str], list[str]] = ([], [])
    opened: tuple[list[int], list[int]] = ([], [])
    stretches: tuple[list[bool], list[bool]] = ([], [])
    texts = [piece.text for _, piece in job.pieces]
    if tokenizer.end_of_line is None:
        opens = [piece.opens == PARAGRAPH for _, piece in job.pieces]
        found = [split_sentences("\n" + text if later else text) for text, later in zip(texts, opens, strict=True)]
    else:
        found = [[text] for text in texts]
    if shuffle is not None:
        found = shuffle_ngrams(found, job.first, shuffle)
    for (split, piece), own in zip(job.pieces, found, strict=True):
        if piece.opens in (DOCUMENT, STRETCH):
            opened[split].append(len(sentences[split]))
            stretches[split].append(piece.opens == STRETCH)
        sentences[split].extend(own)
    first, second = (_encode(tokenizer, *own) for own in zip(sentences, opened, stretches, strict=True))
    return first, second


def _encode(tokenizer: Tokenizer, sentences: list[str], opened: list[int], stretches: list[bool]) -> EncodedShare:
    ids, starts, lengths, hidden = tokenizer.encode_joined(sentences)
    size = len("".join(sentences).encode())
    # Not the tokens that start a word: a token may hold several words.
    words = sum(len(text.split()) for text, length in zip(sentences, lengths.tolist(), strict=True) if length)
    if tokenizer.end_of_line is not None:
        ends = np.cumsum(lengths)
        ids, starts = np.insert(ids, ends, tokenizer.end_of_line), np.insert(starts, ends, True)
        lengths, size, words = lengths + 1, size + len(sentences), words + len(sentences)
    documents = np.array(opened, dtype=np.int64)
    kept = lengths > 0  # nothing is left of a sentence of control characters, for instance
    if not kept.all():
        documents = np.concatenate([[0], np.cumsum(kept)])[documents]
        lengths = lengths[kept]
    documents, first = np.unique(documents, return_index=True)
    # Where several documents open at one sentence, all but the last are empty, and the last is new if any of them is.
    new = np.logical_or.reduceat(~np.array(stretches, dtype=bool), first) if len(first) else np.zeros(0, dtype=bool)
    return EncodedShare(ids, starts, lengths, documents, size, words, ~new, hidden)


def encode_jobs(
    tokenizer: Tokenizer, jobs: Iterable[J], workers: int, encode: Callable[[Tokenizer, J], R]
) -> Iterator[R]:
    """Encode jobs and yield the results in the order of the jobs, the same for any number of workers.

    Args:
        tokenizer: the tokenizer.
        jobs: the jobs, read as the workers take them; at most two for each worker are held.
        workers: number of processes; 0 encodes in this one.
        encode: the function from the tokenizer and a job to the result; a function of a module, or a `partial` of one,
            so that it can be sent.

    Raises:
        WorkerDied: a worker was killed.
    """
    if workers == 0:
        for job in jobs:
            yield encode(tokenizer, job)
        return
    processes: list[subprocess.Popen[bytes]] = []
    idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
    pool = ThreadPoolExecutor(workers)

    def run(job: J) -> R:
        process = idle.get()
        try:
            return cast(R, _ask(process, job))
        finally:
            idle.put(process)

    try:
        setup = (tokenizer.to_string(), encode)
        for _ in range(workers):
            with signals_held_back():  # until the process ignores them, and is one of those that are ended here
                process = _start()
                processes.append(process)
            _send(process.stdin, setup)
            idle.put(process)
        waiting: deque[Future[R]] = deque()
        for job in jobs:
            waiting.append(pool.submit(run, job))
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Also after Ctrl-C or an error of the reader: without its worker, a thread that waits for a result ends.
        for process in processes:
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
        for process in processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # the part that was not sent is still in the buffer
                        stream.close()


def workers_for(asked: int | None, size: int | None) -> int:
    """The number of processes that encode a text; 0: this process encodes.

    Args:
        asked: the number that the user asked for; None: no number.
        size: bytes of the text on disk; None: unknown, but large.
    """
    if asked is not None:
        return asked
    if size is not None and size < _SMALL:
        return 0
    return min(usable_cores(), _MOST_WORKERS)


def _start() -> subprocess.Popen[bytes]:
    environment = worker_environment(threads=1)
    command = [sys.executable, "-P", "-c", "from bakeoff.preparation.encoding.worker import serve; serve()"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(process: "subprocess.Popen[bytes]", job: object) -> Any:
    try:
        _send(process.stdin, job)
        answer = _receive(process.stdout)
    except (BrokenPipeError, EOFError, ValueError):
        raise WorkerDied(
            "a process that encodes text died; is the machine out of memory? Give the same command again"
        ) from None
    if isinstance(answer, UserError):
        raise answer
    if isinstance(answer, str):
        raise RuntimeError(f"a process that encodes text failed:\n{answer}")
    return answer


def _send(stream: IO[bytes] | None, value: object) -> None:
    assert stream is not None
    data = pickle.dumps(value, protocol=5)
    stream.write(struct.pack("<Q", len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> Any:
    assert stream is not None
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    (length,) = struct.unpack("<Q", header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)  # noqa: S301  # of a process that this one has started, or that has started it


def serve() -> None:
    """Run a worker: jobs come on standard input, results go to standard output, until the input ends."""
    ignore_signals()  # they reach the whole group; the parent ends its workers
    release_signals()
    source = os.fdopen(os.dup(0), "rb")
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library must not get between the results
    with contextlib.suppress(EOFError, BrokenPipeError):
        text, encode = _receive(source)
        tokenizer = Tokenizer.from_string(text)
        while True:
            job = _receive(source)
            try:
                answer = encode(tokenizer, job)
            except UserError as error:
                answer = error
            except Exception:
                answer = traceback.format_exc()
            _send(target, answer)
