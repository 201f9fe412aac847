"""YAML files that hold keys and values."""

from pathlib import Path
from typing import Any

import yaml

from bakeoff.errors import UserError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, which is ten times as fast as the one in Python, where PyYAML was built with it."""


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None


def parse_yaml(text: str, where: str) -> dict[str, Any]:
    """A YAML text that holds a mapping."""
    try:
        values = yaml.load(text, _LOADER)  # noqa: S506  # it is a safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{place}: not valid YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(values, dict):
        raise UserError(
            f"{where}: expected keys and values, found {'nothing' if values is None else type(values).__name__}"
        )
    return values
