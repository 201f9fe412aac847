"""What is printed: no name, text or error message reaches a terminal as a command to it.

All that Bakeoff prints goes through this file, or through the console beside it.
"""

import sys

from bakeoff.display.text import visible, visible_json


def show(text: str = "") -> None:
    """Print on standard output what people read."""
    print(visible(text, "\n\t"))


def write(text: str) -> None:
    """Print a line on standard output that programs may read: to the letter, unless a terminal shows it."""
    print(visible(text, "\n\t") if sys.stdout.isatty() else text)


def write_json(text: str, end: str = "\n") -> None:
    """Print JSON on standard output; control characters become escapes that mean the same."""
    print(visible_json(text), end=end)


def suggest(command: str) -> None:
    """Say on standard error what one may do next, to people alone: where that is no terminal, nothing is said."""
    if sys.stderr.isatty():
        tell(f"next: {command}")


def tell(text: str, end: str = "\n") -> None:
    """Print one line on standard error, about what is done or went wrong; a question ends otherwise."""
    print(visible(text, "\t"), end=end, file=sys.stderr, flush=True)
