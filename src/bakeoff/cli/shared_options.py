"""Options that several verbs have in common, typed once: the parameters of the function that makes a value of them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")


def taking(**makers: Callable[..., Any]) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Give a verb the options of a function, in place of the parameter that takes what the function makes of them.

    With `@taking(files=files_of)`, a verb with a parameter `files` has in its place all options of `files_of`, and is
    called with what `files_of` returns. A maker may take what another one makes in the same way.

    Args:
        makers: by the name of a parameter the function that makes its value.
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
