"""Options made of what declares them: the fields of a config, or the parameters of a function of the API."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import typer
from pydantic.fields import FieldInfo

from bakeoff.cli.shared.options import jobs_of, numbers_of
from bakeoff.config import LARGEST, Config
from bakeoff.optimization.budget import Budget

Maker = Callable[..., dict[str, Any]]
"""A function with a parameter for each option, for `taking`; it returns the options' values by their names."""

Typed = Mapping[str, Any]
"""What the command line adds to a declaration: arguments of `typer.Option`; `names`, where an option is not named after
its field or parameter; `type` and `default`, where those of its text are others; `about`, words before its help."""

BUDGET: Typed = {"parser": Budget.parse_text, "metavar": "UNIT=AMOUNT"}

_ALWAYS: dict[str, Typed] = {
    "seed": {"min": 0, "max": LARGEST},
    "jobs": {"parser": jobs_of, "metavar": "N"},
    "budget": BUDGET,
}
"""What the command line adds to declarations of these names, whichever function has them."""

_PLAIN: dict[str, Any] = {"Path": Path, "int": int, "float": float, "bool": bool, "str": str}
"""Types that typer reads; of several the first is taken."""

_NUMBERS = (tuple[int, ...], tuple[int, ...] | None)
"""Types of fields that are typed as whole numbers with commas between them."""


class _Declared(NamedTuple):
    """An option as a field or a parameter declares it."""

    type: Any
    default: Any
    words: str
    """The docstring."""
    typed: dict[str, Any]
    """Arguments of `typer.Option` that follow from the type."""


def options_of(config: type[Config], *names: str, about: str = "", **typed: Typed) -> Maker:
    """A maker for `taking`: an option for each named field of a config, with the field's type, default and docstring.

    What a docstring says after `None:` is the option's default in words. Several whole numbers are typed with commas
    between them, several files with the option repeated.

    Args:
        config: the config that declares the options.
        names: its fields, in the order of the options; none: all.
        about: words before the help of each, which say what the options are for.
        typed: what the command line adds, by the names of fields.
    """
    fields = {name: config.model_fields[name] for name in names or config.model_fields}
    numbers = [name for name, field in fields.items() if field.annotation in _NUMBERS]

    def made(**arguments: Any) -> dict[str, Any]:
        texts = {name: numbers_of(_dashed(name), text) for name in numbers if (text := arguments[name]) is not None}
        return {
            name: () if arguments[name] is None and field.default == () else arguments[name]
            for name, field in fields.items()
        } | texts

    return _with_options(made, {name: _of_field(field) for name, field in fields.items()}, about, typed)


def options_from(source: str, *names: str, about: str = "", **typed: Typed) -> Maker:
    """The same for the keyword parameters of a function, or for a config, whose file is read and not imported.

    Most of the API needs torch, for which `--help` shall not wait. Types that the command line has not are typed as
    texts. The maker leaves out options that were not given and whose default is no value that can be typed.

    Args:
        source: the function or config with its module, such as `bakeoff.tuning.tune.tune`.
        names: its parameters or fields, in the order of the options.
        about: words before the help of each, which say what the options are for.
        typed: what the command line adds, by the names of parameters or fields.
    """
    declared = _read(source)
    typed = {name: {**_ALWAYS.get(name, {}), **typed.get(name, {})} for name in names}

    def made(**arguments: Any) -> dict[str, Any]:
        return {name: value for name, value in arguments.items() if value is not None}

    return _with_options(made, {name: declared[name] for name in names}, about, typed)


def _with_options(made: Maker, declared: Mapping[str, _Declared], about: str, typed: Mapping[str, Typed]) -> Maker:
    """The function, with the signature that `taking` gives to a verb."""
    shown = {name: names[0] for name, each in typed.items() if (names := each.get("names"))}
    parameters = []
    for name, each in declared.items():
        adding = {"about": about, **typed.get(name, {})}
        parameters.append(_option(name, each._replace(words=_help(each.words, shown, adding.pop("about"))), adding))
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def _option(name: str, declared: _Declared, typed: dict[str, Any]) -> inspect.Parameter:
    """The parameter by which typer offers an option."""
    annotation, default = typed.pop("type", declared.type), typed.pop("default", declared.default)
    # A switch stands alone, without one for the opposite.
    names = typed.pop("names", (_dashed(name),) if declared.default is False else ())
    words = declared.words
    if default == []:
        said, default_in_words, rest = words.partition(" Default: ")
        words = f"{said} May be repeated.{default_in_words}{rest}"
    if default is None and declared.default not in (None, ...):  # it holds where the option is left out
        typed.setdefault("show_default", str(declared.default))
    option = typer.Option(*names, help=words, **{**declared.typed, **typed})
    kind: Any = annotation | None if default is None else annotation
    described = Annotated[kind, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=described, default=default)


def _help(words: str, shown: Mapping[str, str], about: str) -> str:
    """A docstring as the help says it, with the names of options for those of fields and parameters."""
    text = re.sub("`([a-z_]+)`", lambda named: shown.get(named[1], _dashed(named[1])), " ".join(words.split()))
    text = re.sub(r"[;.] (?:None|null|Absent): (.*)", r". Default: \1", text)
    return f"{about}: {text[0].lower()}{text[1:]}" if about else f"{text[0].upper()}{text[1:]}"


def _of_field(field: FieldInfo) -> _Declared:
    """A field of a config."""
    annotation, default = field.annotation, ... if field.is_required() else field.default
    if annotation in _NUMBERS:
        default = None if field.default is None else ",".join(map(str, field.default))
        return _Declared(str, default, field.description or "", {"metavar": "N,N"})
    if annotation == tuple[Path, ...] or annotation == list[str] | None:
        return _Declared(list[str] | None, None, field.description or "", {"metavar": "FILE"})
    return _Declared(annotation, default, field.description or "", _bounds(field))


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


@cache
def _read(source: str) -> dict[str, _Declared]:
    """The parameters of a function, or the fields of a config, by their names."""
    module, _, name = source.rpartition(".")
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None, source
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    node = next(each for each in tree.body if getattr(each, "name", None) == name)
    constants = {ast.unparse(each.targets[0]): each.value for each in tree.body if isinstance(each, ast.Assign)}
    if isinstance(node, ast.ClassDef):
        return {
            field.target.id: _declared(field.annotation, _default_of(field), ast.literal_eval(words.value))
            for field, words in zip(node.body, node.body[1:], strict=False)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(words, ast.Expr)
        }
    assert isinstance(node, ast.FunctionDef)
    of_each = _words_of(ast.get_docstring(node) or "")
    given = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return {
        each.arg: _declared(each.annotation, constants.get(ast.unparse(default), default), of_each[each.arg])
        for each, default in given
        if default is not None
    }


def _words_of(docstring: str) -> dict[str, str]:
    """What a docstring says about each argument."""
    section = docstring.partition("Args:\n")[2].partition("\n\n")[0]
    parts = re.split(r"^    (\w+): ", section, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _default_of(field: ast.AnnAssign) -> ast.expr | None:
    """The default of a config's field; None: it has none."""
    value = field.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "Field":
        return next((each.value for each in value.keywords if each.arg == "default"), None)
    return value


def _declared(annotation: ast.expr | None, default: ast.expr | None, words: str) -> _Declared:
    assert annotation is not None
    value: Any = ...
    if default is not None:
        # Where it is a part of a config, or made by a call, the option is None, and left out.
        value = ast.literal_eval(default) if isinstance(default, ast.Constant | ast.Tuple | ast.List) else None
    several = isinstance(value, tuple | list)
    return _Declared(_type(annotation), [] if several else value, words, {})


def _type(annotation: ast.expr) -> Any:
    """The type by which typer reads a value: that of the annotation, or text."""
    members = _members(annotation)
    named = [each.id for each in members if isinstance(each, ast.Name)]
    filled = {ast.unparse(each.value): each.slice for each in members if isinstance(each, ast.Subscript)}
    if "Literal" in filled and not named and len(filled) == 1:
        choices = ast.literal_eval(filled["Literal"])
        plain: Any = Literal[choices]
    elif inner := filled.get("Sequence", filled.get("list")):
        plain = list[_type(inner)]  # type: ignore[misc]
    else:
        plain = next((type for name, type in _PLAIN.items() if name in named and not filled), str)
    none = any(isinstance(each, ast.Constant) and each.value is None for each in members)
    return plain | None if none else plain


def _members(annotation: ast.expr) -> list[ast.expr]:
    """The members of a union."""
    if isinstance(annotation, ast.BinOp):
        return [*_members(annotation.left), *_members(annotation.right)]
    return [annotation]


def _dashed(name: str) -> str:
    """The option of a field or parameter."""
    return f"--{name.replace('_', '-')}"
