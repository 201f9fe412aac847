"""Options that several verbs share, declared once as the parameters of the function that makes a value of them."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from bakeoff.display.printing import PRINTING

Result = TypeVar("Result")


def taking(**makers: Callable[..., Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the options of a function, instead of the parameter that takes the function's result.

    With `@taking(files=files_of)`, a verb has all options of `files_of` instead of its parameter `files`, and is
    called with the result of `files_of`. A maker may take the result of another maker in the same way.

    Args:
        makers: the function that makes the value of each parameter, by the parameter's name.
    """

    def decorated(verb: Callable[..., Result]) -> Callable[..., Result]:
        signature = inspect.signature(verb)
        options = {name: list(inspect.signature(maker).parameters.values()) for name, maker in makers.items()}
        parameters = [
            option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in signature.parameters.items()
            for option in options.get(name, [parameter])
        ]

        @wraps(verb)
        def taken(**arguments: Any) -> Result:
            made = {}
            for name, maker in makers.items():
                made[name] = maker(**{option.name: arguments.pop(option.name) for option in options[name]})
            return verb(**arguments, **made)

        taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        taken.__annotations__ = {option.name: option.annotation for option in parameters}
        return taken

    return decorated


def of_checkpoint(argument: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the option `--checkpoint`, by which its argument with the path of a run becomes that of a checkpoint.

    Args:
        argument: the name of the parameter with the path.
    """

    def decorated(verb: Callable[..., Result]) -> Callable[..., Result]:
        @wraps(verb)
        def taken(*, checkpoint: str | None, **arguments: Any) -> Result:
            if checkpoint is not None:
                from bakeoff.runs.finding import find_checkpoint

                path = find_checkpoint(arguments[argument], checkpoint)
                arguments[argument] = path if isinstance(arguments[argument], Path) else str(path)
            return verb(**arguments)

        with_option(taken, verb, "checkpoint", CHECKPOINT, None)
        return taken

    return decorated


CHECKPOINT = Annotated[
    str | None,
    typer.Option(
        metavar="STEP|POINT",
        help="Checkpoint of the run to take, by its step (1000) or the point at which it was kept (words=1M).",
    ),
]


def with_option(taken: Callable[..., Any], verb: Callable[..., Any], name: str, annotation: Any, default: Any) -> None:
    """Add an option to the signature that a decorated verb shows to typer, after all others but `--json`."""
    signature = inspect.signature(verb)
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
    option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
    last = len(parameters) - (bool(parameters) and parameters[-1].name == "json")
    parameters.insert(last, option)
    taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    taken.__annotations__ = {each.name: each.annotation for each in parameters}


QUIET = Annotated[bool, typer.Option("--quiet", help="Print results and errors only, neither progress nor remarks.")]
LOG = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also append everything that is printed to FILE, in plain lines with the time."),
]


def noted(verb: Callable[..., Result]) -> Callable[..., Result]:
    """Give a verb that works long the options `--quiet` and `--log`, see `bakeoff.display.printing`."""

    @wraps(verb)
    def taken(*, quiet: bool, log: Path | None, **arguments: Any) -> Result:
        PRINTING.begin(quiet, log)
        result = verb(**arguments)
        PRINTING.end()  # after an error the command line does so, once it has printed it
        return result

    with_option(taken, verb, "quiet", QUIET, False)
    with_option(taken, taken, "log", LOG, None)
    return taken
