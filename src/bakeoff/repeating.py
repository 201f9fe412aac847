"""Work that is done again and again in a thread beside other work."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeating(seconds: float, work: Callable[[], None], name: str) -> Iterator[None]:
    """A context in which a thread calls a function every so many seconds; when it ends, a call that runs is waited for.

    Args:
        seconds: the time before each call.
        work: the function.
        name: the name of the thread.
    """
    over = threading.Event()

    def call_again() -> None:
        while not over.wait(seconds):
            work()

    thread = threading.Thread(target=call_again, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
