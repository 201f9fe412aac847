"""The guard of work that goes on: what was begun with other settings is refused, in one form of sentence."""

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from bakeoff.config import differing
from bakeoff.errors import UserError

LONGEST = 60
"""The most characters of a value in an error; longer ones are cut."""

SHARED = 10
"""The characters of a long beginning that both values share that are left."""


def require_same(
    where: Path, begun: Mapping[str, Any], now: Mapping[str, Any], advice: str, unnamed: Collection[str] = ()
) -> None:
    """Refuse to go on with what was begun with other settings.

    Args:
        where: what was begun, as the user names it.
        begun: the settings with which it was begun, in which keys of later versions have their defaults.
        now: the settings that are asked for.
        advice: what to do, the end of the sentence.
        unnamed: keys, dotted ones too, whose values say nothing to a reader, such as a digest or the content of a file.

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
            if key in unnamed:
                yield f"another {key}"
                continue
            yield "{} {}, not {}".format(key, *_short(old, new))


def _short(*values: Any) -> list[str]:
    """Values as JSON; a long beginning that they share, and what is too long, is left out."""
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    shared = sum(1 for _ in takewhile(lambda letters: len({*letters}) == 1, zip(*texts, strict=False)))
    if max(map(len, texts)) > LONGEST and shared > SHARED:
        texts = [f"...{text[shared - SHARED :]}" for text in texts]
    return [text if len(text) <= LONGEST else text[: LONGEST - 3] + "..." for text in texts]
