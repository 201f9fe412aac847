"""Errors that a user can cause: one line that says what is wrong, where, and what to do."""

import difflib
import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

WHERE_RUNS_ARE = "`bakeoff runs FOLDER` lists the runs below a folder"
"""The end of an error about a run that is not there."""

_LONGEST = 200
"""The most characters of a name that is compared with others."""


class UserError(Exception):
    """A mistake in the user's input; the command line prints it as one line and exits with status 2."""


class Diverged(UserError):
    """A training whose loss is not a finite number any more; the same settings would most likely end there again."""


class LostProcess(UserError):
    """Another process of the same training has ended without a word: it was killed, or its machine failed."""


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.5) -> str:
    """A hint with the candidate closest to a misspelt name, e.g. ``; did you mean 'length'?``; see `similar`."""
    candidates = sorted(candidates)
    return similar(name, candidates, cutoff) or (f"; choose from {', '.join(candidates)}" if candidates else "")


def similar(name: str, candidates: Iterable[str], cutoff: float = 0.5) -> str:
    """A question whether the nearest of many candidates is meant; empty where none is close (`cutoff`, 1: equal)."""
    if len(name) > _LONGEST:
        return ""
    close = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ""


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8: it has no half of a surrogate pair, and no byte that was none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(given: object, most: int = 80) -> str:
    """An object of Python as an error shows it: its beginning, on one line, which a table of several rows is not."""
    return " ".join(repr(given).split())[:most]


def require_object(name: str, given: object, kind: type, advice: str, *, needed: bool = False) -> None:
    """Refuse an argument of Python that is not the object that is wanted, such as its text or its name.

    None stands for a default where the object is not `needed`.

    Raises:
        UserError: it is something else.
    """
    if not isinstance(given, kind) and (needed or given is not None):
        raise UserError(f"{name}: {shown(given)} is no {kind.__name__}; give {advice}")


def at_home(path: str | PathLike[str]) -> Path:
    """A path with the home folder in place of ~; that of a user who is not known stays as it is written."""
    return Path(os.path.expanduser(path))


def path_of(given: object, name: str = "run") -> Path:
    """The path that an argument of Python is.

    Raises:
        UserError: it is something else, such as a number.
    """
    if not isinstance(given, str | PathLike):
        raise UserError(f"{name}: {shown(given)} is no path; give a str or a pathlib.Path")
    return Path(given)


def require_utf8(given: str) -> None:
    """Refuse the name of a file, or a text, whose bytes are not UTF-8: no record of a run could hold it.

    Raises:
        UserError: they are not.
    """
    if not is_utf8(given):
        raise UserError(f"{given!r} is not valid UTF-8; rename the file, or convert the text")


class Interrupted(Exception):
    """SIGINT, SIGTERM, SIGHUP or SIGUSR1 asked to stop; the work so far is saved, or nothing is left.

    Args:
        message: what happened and how to go on.
        signal_number: the signal that came.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number
