"""The pace of lines about progress where there is no terminal."""

import time

LINE_SECONDS = 15.0
"""Seconds between two lines of figures."""


class Pace:
    """A line every `LINE_SECONDS`, the first after as many seconds."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a line, which then counts as printed."""
        if time.monotonic() - self.last <= LINE_SECONDS:
            return False
        self.last = time.monotonic()
        return True

    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began
