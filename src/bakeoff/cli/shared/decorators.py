"""Options that several verbs share, declared once as the parameters of the function that makes a value of them."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer
from pydantic.fields import FieldInfo

from bakeoff.cli.shared.options import numbers_of
from bakeoff.config import Config
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


def options_of(config: type[Config], *names: str, about: str = "") -> Callable[..., dict[str, Any]]:
    """A maker for `taking`: an option for each named field of a config, with the field's type, default and docstring.

    What a docstring says after `None:` is the option's default in words. Several whole numbers are typed with commas
    between them, several files with the option repeated. The maker returns the values by the fields' names.

    Args:
        config: the config that declares the options.
        names: its fields, in the order of the options; none: all.
        about: words before the help of each, which say what the options are for.
    """
    fields = {name: config.model_fields[name] for name in names or config.model_fields}
    numbers = [name for name, field in fields.items() if field.annotation == tuple[int, ...]]

    def made(**arguments: Any) -> dict[str, Any]:
        texts = {name: numbers_of(_dashed(name), arguments[name]) for name in numbers}
        return {
            name: () if arguments[name] is None and field.default == () else arguments[name]
            for name, field in fields.items()
        } | texts

    parameters = [_option(name, field, about) for name, field in fields.items()]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def _option(name: str, field: FieldInfo, about: str) -> inspect.Parameter:
    """The parameter by which typer offers a field of a config."""
    words = re.sub("`([a-z_]+)`", lambda named: _dashed(named[1]), " ".join((field.description or "").split()))
    if about:
        words = f"{about}: {words[0].lower()}{words[1:]}"
    switch: list[str] = []
    annotation, default, metavar = field.annotation, ... if field.is_required() else field.default, None
    if default is False:
        switch = [_dashed(name)]  # alone, without one for the opposite
    elif annotation == tuple[int, ...]:
        annotation, default, metavar = str, ",".join(map(str, field.default)), "N,N"
    elif annotation == tuple[Path, ...] or annotation == list[str] | None:
        annotation, default, metavar = list[str] | None, None, "FILE"
    bounds: dict[str, Any] = {} if metavar else _bounds(field)
    option = typer.Option(*switch, help=re.sub(r"[;.] None: (.*)", r". Default: \1", words), metavar=metavar, **bounds)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=Annotated[annotation, option], default=default)


def _bounds(field: FieldInfo) -> dict[str, float]:
    """The bounds of a number that typer can check, and that the help then shows."""
    bounds: dict[str, float] = {}
    for bound in field.metadata:
        for name, value in (("min", getattr(bound, "ge", None)), ("max", getattr(bound, "le", None))):
            bounds |= {} if value is None else {name: value}
        if isinstance(above := getattr(bound, "gt", None), int) and int in (
            field.annotation,
            *get_args(field.annotation),
        ):
            bounds["min"] = above + 1
    return bounds


def _dashed(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


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
