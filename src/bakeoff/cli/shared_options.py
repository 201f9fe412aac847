"""Options that several verbs share, declared once as the parameters of the function that makes a value of them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")


def taking(**makers: Callable[..., Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the options of a function, in place of the parameter that takes the function's result.

    With `@taking(files=files_of)`, a verb has all options of `files_of` in place of its parameter `files`, and is
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
        def taken(**given: Any) -> Result:
            made = {}
            for name, maker in makers.items():
                made[name] = maker(**{option.name: given.pop(option.name) for option in options[name]})
            return verb(**given, **made)

        taken.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        taken.__annotations__ = {option.name: option.annotation for option in parameters}
        return taken

    return decorated
