"""Printing, with control characters of names, texts and errors escaped before they reach a terminal.

Everything that Bakeoff prints goes through this file or through `console.py`.
"""

import sys

from bakeoff.display.text import visible, visible_json


def show(text: str = "") -> None:
    """Print a text for people on standard output."""
    print(visible(text, "\n\t"))


def write(text: str) -> None:
    """Print a line for programs on standard output: unchanged, or with escapes on a terminal."""
    print(visible(text, "\n\t") if sys.stdout.isatty() else text)


def write_json(text: str, end: str = "\n") -> None:
    """Print JSON on standard output, with control characters as equivalent escapes."""
    print(visible_json(text), end=end)


def suggest(command: str) -> None:
    """Print a command that the user may run next on standard error, if that is a terminal."""
    if sys.stderr.isatty():
        tell(f"next: {command}")


def tell(text: str, end: str = "\n") -> None:
    """Print one line about progress or an error on standard error; a question has another `end`."""
    print(visible(text, "\t"), end=end, file=sys.stderr, flush=True)
