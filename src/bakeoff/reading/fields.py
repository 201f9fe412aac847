"""Names of fields and columns."""

import unicodedata

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
