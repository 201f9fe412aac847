"""A stranger's config.json: each value is of the type that is wanted, or the error names the key."""

from collections.abc import Mapping
from typing import Any

from bakeoff.errors import UserError


class ConfigReader:
    """The values of a config.json, asked for one by one."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """`where` is the file, named in errors."""
        self.values, self.where = values, where

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on; the default where the key is absent or null.

        Raises:
            UserError: it is something else, or needed and absent.
        """
        value = self._found(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{self.where}: {key}: a whole number from 1 on is wanted, not {value!r:.50}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number from 0 on.

        Raises:
            UserError: it is something else, or needed and absent.
        """
        value = self._found(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{self.where}: {key}: a number from 0 on is wanted, not {value!r:.50}")
        return float(value)

    def choice(self, key: str, choices: Mapping[str, str], default: str) -> str:
        """Our word for one of theirs.

        Raises:
            UserError: there is no such word, or Bakeoff has nothing like it.
        """
        value = self._found(key, default)
        if not isinstance(value, str) or value not in choices:
            raise UserError(f"{self.where}: {key}: {value!r:.50} has no counterpart here ({', '.join(choices)} have)")
        return choices[value]

    def require(self, key: str, wanted: Any) -> None:
        """A key that, where it is there, has this value and no other.

        Raises:
            UserError: it has another one.
        """
        value = self.values.get(key, wanted)
        if value != wanted and value is not None:
            raise UserError(f"{self.where}: {key}: {value!r:.50} has no counterpart here; only {wanted!r} has")

    def _found(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise UserError(f"{self.where}: {key} is missing")
        return value
