"""Names of fields and columns."""

import unicodedata
from collections.abc import Sequence
from typing import Any

from bakeoff.errors import UserError, nearest


def existing(name: str, names: list[str], where: str, what: str, advice: str) -> str:
    """The name as the file spells it, after a check that it exists; NFC and NFD spell the same name.

    Args:
        name: the field or column that is wanted.
        names: the existing names.
        where: the file, and the line where there is one.
        what: "field" or "column".
        advice: advice for the error.

    Raises:
        UserError: the name is not among the existing ones.
    """
    if name in names:
        return name
    composed = unicodedata.normalize("NFC", name)
    if alike := [key for key in names if unicodedata.normalize("NFC", str(key)) == composed]:
        return alike[0]
    shown = ", ".join(str(key)[:40] for key in names[:20]) or "none"
    hint = nearest(name, names[:100])
    hint = hint if "did you mean" in hint else ""
    raise UserError(f"{where}: no {what} '{name}'{hint} ({what}s here: {shown}){advice}")


def require_single(wanted: Sequence[str], names: list[str], where: str) -> None:
    """Refuse columns that share a wanted name, which cannot be told apart.

    Raises:
        UserError: several columns have one of the wanted names.
    """
    twice = next((name for name in wanted if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{where}: {names.count(twice)} columns are called '{twice}'; rename all but one")


def column_and_keys(name: str, names: list[str], where: str, what: str, advice: str) -> tuple[str, list[str]]:
    """The column and the keys within it for a name: `translation.de` is `de` of the column `translation`.

    Raises:
        UserError: there is no such column.
    """
    column, *keys = name.split(".")
    if name in names or not keys or column not in names:
        return existing(name, names, where, what, advice), []
    return column, keys


def within(value: Any, keys: Sequence[str], where: str, name: str) -> Any:
    """The value under the keys of nested objects.

    Raises:
        UserError: a key is missing.
    """
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            here = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
            raise UserError(f"{where}: nothing stands under '{key}' of '{name}' (here: {here[:80]})")
        value = value[key]
    return value
