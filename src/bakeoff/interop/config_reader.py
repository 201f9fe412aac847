"""The config.json of another tool: each value has the wanted type, or an error names its key."""

from collections.abc import Mapping
from typing import Any

from bakeoff.errors import UserError

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
}
"""Our names of activations by theirs."""
THEIR_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_tanh": "gelu_new"}
"""Their names of activations by ours."""


class ConfigReader:
    """Checked access to the values of a config.json; an absent key and null are the same."""

    def __init__(self, values: Mapping[str, Any], where: str, names: Mapping[str, str] | None = None) -> None:
        """Read from `values`; errors name the file's path `where`, and the file's name of a key, if `names` has one."""
        self.values, self.where, self._names = values, where, names or {}

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 on; `default` for an absent key.

        Raises:
            UserError: the value is something else, or absent without a default.
        """
        value = self._found(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{self._at(key)}: a whole number from 1 on is wanted, not {value!r:.50}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number from 0 on; `default` for an absent key.

        Raises:
            UserError: the value is something else, or absent without a default.
        """
        value = self._found(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{self._at(key)}: a number from 0 on is wanted, not {value!r:.50}")
        return float(value)

    def choice(self, key: str, choices: Mapping[str, str], default: str) -> str:
        """Our word for the value of a key, from `choices` (ours by theirs); an absent key has the value `default`.

        Raises:
            UserError: the value is not in `choices`.
        """
        value = self._found(key, default)
        if not isinstance(value, str) or value not in choices:
            raise UserError(f"{self._at(key)}: {value!r:.50} has no counterpart here ({', '.join(choices)} have)")
        return choices[value]

    def require(self, key: str, wanted: Any) -> None:
        """Refuse a config in which a key is present and has another value than `wanted`.

        Raises:
            UserError: the key has another value.
        """
        value = self.values.get(key, wanted)
        if value != wanted and value is not None:
            raise UserError(f"{self._at(key)}: {value!r:.50} has no counterpart here; only {wanted!r} has")

    def _found(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise UserError(f"{self._at(key)} is missing")
        return value

    def _at(self, key: str) -> str:
        return f"{self.where}: {self._names.get(key, key)}"
