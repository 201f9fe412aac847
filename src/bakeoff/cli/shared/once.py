"""The values of a command's options: one where one is taken, and paths with ~, which a shell leaves in --out=~/runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand
from typing_extensions import override

from bakeoff.errors import UserError, at_home

_SEVERAL = {
    "--corpus": "mix them: --corpus DIR:0.7,DIR:0.3",
    "--train": "join the files into one",
}
"""What to do where somebody may have meant both values."""


class Verb(TyperCommand):
    """A command whose options that take one value are given one, and whose paths may begin with ~."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _require_one_value_each(self.get_params(ctx), args)
        rest = super().parse_args(ctx, args)
        for name, value in ctx.params.items():
            ctx.params[name] = _at_home(value)
        return rest


def _at_home(value: Any) -> Any:
    """A path, or several, with the home folder in place of ~; what is none stays."""
    if isinstance(value, list | tuple):
        return type(value)(map(_at_home, value))
    return at_home(value) if isinstance(value, Path) else value


def _require_one_value_each(parameters: Sequence[Any], arguments: Sequence[str]) -> None:
    """Refuse an option that takes one value and is given two; the same value twice, as of an alias, is one.

    Raises:
        UserError: such an option is given with two values.
    """
    options = {name: each for each in parameters for name in (*each.opts, *each.secondary_opts) if name[:1] == "-"}
    first: dict[str, tuple[str, str]] = {}
    for name, value in _given(options, arguments):
        option = options[name]
        if option.multiple or option.nargs != 1:
            continue
        written = name if value is None else f"{name} {value}"
        before, same = first.setdefault(option.name, (written, value or name))
        if same != (value or name):
            advice = f", or {_SEVERAL[name]}" if name in _SEVERAL else ""
            raise UserError(f"{before}, {written}: it takes one value; give one of the two{advice}")


def _given(options: Mapping[str, Any], arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The options as they are written, each with its value; None: it has none."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return
        name, equals, value = argument.partition("=")
        if name in options:
            takes = not (options[name].is_flag or options[name].count)
            yield name, (value if equals else next(rest, "")) if takes else None
