"""Work in a thread that another one may end: it looks, at points where nothing is half done, whether it is to go on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOOK: ContextVar[Callable[[], None] | None] = ContextVar("look", default=None)


@contextmanager
def stopped_by(look: Callable[[], None]) -> Iterator[None]:
    """A context in which `go_on` calls a function of this thread's own, which raises an error to end the work."""
    before = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(before)


def go_on() -> None:
    """Go on, unless the work is to end: then the error of `stopped_by`'s function is raised."""
    look = _LOOK.get()
    if look is not None:
        look()
