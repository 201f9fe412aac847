"""Reading YAML that may hold anything: all but plain keys and values is refused, with the file and the line."""

import math
import re
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

from bakeoff import checksums
from bakeoff.errors import UserError

DEEPEST = 64
"""The deepest nesting of lists and mappings."""
MOST_VALUES = 100_000
"""The most values of a file; a value that aliases repeat counts each time."""
LONGEST_NUMBER = 100
"""The most digits of a whole number."""
MOST_BYTES = 1 << 24
"""Largest number of bytes of a file."""

_C = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, ten times as fast as the one in Python, if PyYAML was built with it."""
_TAG = "tag:yaml.org,2002:"


_COLON = re.compile(r"mapping values are not allowed|.*expected ',' or")
"""The beginning of YAML's complaints about a text with a colon and a space in it."""
_QUOTE = '; if a text has a colon in it, quote it, "like: this"'


_SIGNS = re.compile(r"""\s*(?:- |[^\s"'\[{#-][^:]*: )+(?=[\[\]{}*&@%`"'!|>,?])""")
"""The beginning of a line up to a value that begins with a sign that YAML takes for its own."""
_ALONE = tuple("&*@%`!|>,?:")
"""Such signs with which no YAML of a single line begins, so that the value of an option that does is meant as text."""


class _Refused(ConstructorError):
    """A file that is valid YAML, but not what Bakeoff reads."""


class _Loader(_C):  # type: ignore[misc, valid-type]
    """The values of YAML 1.2: a date, `12:30`, 010 and `no` are texts, and 1e-3 is a number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    yaml_constructors = {  # noqa: RUF012
        tag: build
        for tag, build in SafeConstructor.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in ("null", "bool", "str", "seq", "map")
    }

    def whole(self, node: yaml.ScalarNode) -> int:
        digits = self.construct_scalar(node).replace("_", "")
        if len(digits) > LONGEST_NUMBER:
            raise _Refused(problem=f"a number of {len(digits)} digits", problem_mark=node.start_mark)
        return int(digits, 16 if digits.startswith("0x") else 10)

    def fraction(self, node: yaml.ScalarNode) -> float:
        text = self.construct_scalar(node).replace("_", "").lower()
        value = math.inf if text.lstrip("+-") == ".inf" else math.nan if text == ".nan" else float(text)
        if not math.isfinite(value):
            raise _Refused(problem=f"{text[:40]} is no finite number", problem_mark=node.start_mark)
        return value


_Loader.add_constructor(f"{_TAG}int", _Loader.whole)
_Loader.add_constructor(f"{_TAG}float", _Loader.fraction)
for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))"
        r"|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"^(?:{_pattern})$"), _first)


class _Dumper(yaml.SafeDumper):
    """Quotes a text where one of YAML's versions would take it for something else, and writes no aliases."""

    yaml_implicit_resolvers = {key: [*known] for key, known in yaml.SafeDumper.yaml_implicit_resolvers.items()}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value in its place, never as an alias of another one."""
        return True


for _key, _resolvers in _Loader.yaml_implicit_resolvers.items():
    _Dumper.yaml_implicit_resolvers.setdefault(_key, []).extend(_resolvers)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        UserError: the file cannot be read, is not what was written, or holds something else.
    """
    content = checksums.read(path, MOST_BYTES)
    try:
        return parse_yaml(content.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read: not UTF-8 text (byte {error.start})") from None


def parse_yaml(text: str, where: str) -> dict[str, Any]:
    """A YAML text that holds a mapping.

    Raises:
        UserError: it holds something else, or is refused by `parse_value`.
    """
    values = parse_value(text, where)
    if not isinstance(values, dict):
        kind = "nothing" if values is None else type(values).__name__
        raise UserError(f"{where}: expected keys and values, found {kind}")
    return values


def parse_value(text: str, where: str) -> Any:
    """A YAML text that holds texts, numbers, truth values, null, and lists and mappings of them.

    Args:
        text: the YAML.
        where: the file or option that the text comes from, named in the error.

    Raises:
        UserError: the text is no YAML or has other types; a key comes twice in a mapping or is no text; a number is not
            finite or too long; lists and mappings are nested too deep, within themselves, or multiplied by aliases.
    """
    try:
        _require_shallow(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _measure(node, 1, {})
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark and "\n" in text else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        kind = "" if isinstance(error, _Refused) else "not valid YAML: "
        advice = _QUOTE if _COLON.match(problem) else _advice_on(text, mark) if kind else ""
        raise UserError(f"{where}{line}: {kind}{problem}{advice}") from None
    except (ValueError, LookupError, TypeError) as error:  # a tag such as !!bool before something else
        raise UserError(f"{where}: not valid YAML: {error}") from None


def _advice_on(text: str, mark: yaml.Mark | None) -> str:
    """Advice on a tab, or a value that begins with a sign of YAML, in the line of an error; else empty."""
    lines = text.split("\n")
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if re.match(r" *\t", line):
        return "; indent with spaces, and not with tabs"
    if _SIGNS.match(line) or (text == line and line.strip()[:1] in _ALONE):
        return "; a text that begins with a sign of YAML's is quoted, 'like this'"
    return ""


def dump_yaml(values: dict[str, Any]) -> str:
    """Values as YAML, in their order."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _require_shallow(text: str) -> None:
    """Refuse nesting so deep that PyYAML, which recurses, would run out of stack."""
    depth = 0
    for event in yaml.parse(text, Loader=_C):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                _refuse(f"more than {DEEPEST} lists and mappings within each other", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _measure(node: yaml.Node, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many values a node stands for and how deep it is, aliases followed; its keys are checked.

    Args:
        node: the node.
        depth: the depth at which the node stands.
        known: results for nodes that were seen before, by identity.
    """
    values, height = known.get(id(node), (1, 0))
    if depth + height > DEEPEST:
        _refuse(f"more than {DEEPEST} lists and mappings within each other, or one within itself", node)
    if id(node) not in known and isinstance(node, yaml.CollectionNode):
        children = node.value
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [value for _, value in node.value]
        for child in children:
            count, below = _measure(child, depth + 1, known)
            values, height = values + count, max(height, below + 1)
        if values > MOST_VALUES:
            _refuse(f"more than {MOST_VALUES:,} values, aliases counted each time", node)
        known[id(node)] = values, height
    return values, height


def _check_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if key.tag == f"{_TAG}merge":
            continue
        if key.tag != f"{_TAG}str" or not isinstance(key, yaml.ScalarNode):
            wrong = f"'{key.value}'" if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            _refuse(f"a key has to be a name, {wrong} is none (put it in quotes)", key)
        if key.value in seen:
            _refuse(f"the key '{key.value}' comes twice", key)
        seen.add(key.value)


def _refuse(problem: str, at: Any) -> NoReturn:
    raise _Refused(problem=problem, problem_mark=at.start_mark)
