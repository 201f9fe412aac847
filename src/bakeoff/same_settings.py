"""The guard of work that goes on: what was begun with other settings is refused, in one form of sentence."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bakeoff.config import differing
from bakeoff.errors import UserError

LONGEST = 60
"""The most characters of a value in an error; longer ones are cut."""


def require_same(
    where: Path, begun: Mapping[str, Any], now: Mapping[str, Any], advice: str, unnamed: Collection[str] = ()
) -> None:
    """Refuse to go on with what was begun with other settings.

    Args:
        where: what was begun, as the user names it.
        begun: the settings with which it was begun, in which keys of later versions have their defaults.
        now: the settings that are asked for.
        advice: what to do, the end of the sentence.
        unnamed: keys whose values say nothing to a reader, such as a digest or the content of a file.

    Raises:
        UserError: `WHERE: begun with KEY OLD, not NEW; ADVICE`, or `WHERE: begun with another KEY; ADVICE`, of the
            first difference.
    """
    for difference in differences(begun, now, unnamed):
        raise UserError(f"{where}: begun with {difference}; {advice}")


def differences(begun: Mapping[str, Any], now: Mapping[str, Any], unnamed: Collection[str] = ()) -> Iterator[str]:
    """The differences of settings in words, such as `seed 0, not 1` and `another text.txt`; see `require_same`."""
    for name in [*now, *(name for name in begun if name not in now)]:
        for key, old, new in differing(begun.get(name), now.get(name), name):
            if name in unnamed:
                yield f"another {name}"
                break
            yield f"{key} {_short(old)}, not {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
