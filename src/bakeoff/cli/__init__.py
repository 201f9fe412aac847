"""The command line: each verb parses its arguments and calls one function of the API."""

import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any, NoReturn

import typer
import typer.main

from bakeoff.display import terminal  # not its `show`: the verb of this name is an attribute of this package
from bakeoff.display.printing import PRINTING
from bakeoff.errors import Interrupted, LostProcess, UserError, require_utf8
from bakeoff.full_disk import DiskFull
from bakeoff.machine.allocator import ran_out
from bakeoff.machine.launch import rank_here
from bakeoff.signals import answer_signals, signal_received, stop_answering

# The base of all errors in the use of the command line; some releases of typer bring their own click.
_UsageProblem: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: status 0, or 2 for a user's mistake, or 128 plus the number of a signal."""
    _open_standard_error()
    try:
        answer_signals()
        PRINTING.silent = rank_here() > 0
        status = _flushed(run(arguments))
        stop_answering()
    except KeyboardInterrupt:  # while an error was printed
        status = _fail("interrupted", 128 + signal.SIGINT)
        stop_answering()
    first = signal_received()
    sys.exit(128 + first if first is not None and status == 128 + signal.SIGINT else status)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        return _run(arguments)
    finally:
        PRINTING.end()  # after the line about an error, which belongs into the command's log


def _run(arguments: Sequence[str] | None) -> int:
    try:
        command_line = _plugins_first(sys.argv[1:] if arguments is None else arguments)
        for argument in command_line:
            require_utf8(argument)  # names of files are written into records, most of them at the end of the work
        status = _command().main(command_line, "bakeoff", standalone_mode=False)
    except UserError as error:
        # A library may lose an interruption of an import, and then fail for what was not imported.
        lost = signal_received() is not None and not isinstance(error, DiskFull | LostProcess)
        return _fail("interrupted", 128 + signal.SIGINT) if lost else _fail(str(error), 2)
    except _UsageProblem as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            terminal.show(error.format_message())
            return 0
        return _fail(" ".join(error.format_message().split()).replace(": Value error, ", ": "), 2)  # pydantic's words
    except Interrupted as error:
        return _fail(str(error), 128 + error.signal_number)
    except SystemExit as end:  # typer's answer to a closed pipe
        if isinstance(end.__context__, BrokenPipeError):
            return 128 + signal.SIGPIPE
        if PRINTING.silent and isinstance(end.code, int):  # another process of this command says why
            return end.code
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 128 + signal.SIGINT)
    except Exception as error:
        return _failed(error)
    if status == 128 + signal.SIGINT:  # typer turns Ctrl-C into this status and is silent about it
        return _fail("interrupted", status)
    return status if isinstance(status, int) else 0


@cache  # programs, tests above all, call many verbs
def _command() -> Any:
    """The command with all verbs and their options."""
    from bakeoff.cli.app import app

    return typer.main.get_command(app)


def _plugins_first(arguments: Sequence[str]) -> list[str]:
    """The arguments with every `--plugin FILE` in front of the verb, wherever it was given."""
    first: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            others.append(argument)
            break
        if argument == "--plugin":
            first += [argument, *islice(rest, 1)]
        else:
            (first if argument.startswith("--plugin=") else others).append(argument)
    return [*first, *others, *rest]


def _open_standard_error() -> None:
    """Open standard error if the caller has closed it; else a file that is opened later would take its number."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        os.dup2(sys.stderr.fileno(), 2)
        os.set_inheritable(2, True)


def _flushed(status: int) -> int:
    """Flush standard output and return the exit status; after an error nothing is left to fail at Python's exit."""
    if sys.stdout is None:
        return status
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
    except OSError as error:
        status = _fail(f"standard output: {error.strerror or error}", 2)
    else:
        return status
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    return status


def _failed(error: Exception) -> int:
    """The exit status for an error that is not the user's mistake; one that is a bug is raised again."""
    if isinstance(error, BrokenPipeError):  # the reader of our output, `head` say, has enough
        return 128 + signal.SIGPIPE
    if signal_received() is not None:  # which a library may turn into an error of another kind
        return _fail("interrupted", 128 + signal.SIGINT)
    if ran_out(error):
        return _fail("out of memory; a smaller training.micro_batch takes less, and `bakeoff show` counts how much", 2)
    if isinstance(error, OSError):
        return _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    raise error


def _fail(message: str, status: int) -> int:
    terminal.complain(f"bakeoff: {message}")
    return status
