"""Checks of texts from a caller."""

from collections.abc import Sequence

from bakeoff.display.wording import counted
from bakeoff.errors import UserError


def several(texts: Sequence[str]) -> Sequence[str]:
    """Refuse a single text in place of a sequence of texts, since its letters would be taken for texts.

    Raises:
        UserError: `texts` is a single text.
    """
    if isinstance(texts, str):
        raise UserError(f"texts: a list of texts is wanted, and this is one ('{texts[:30]}'); put it into a list")
    return texts


def as_long(texts: Sequence[str], pairs: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Refuse texts and second texts that differ in number.

    Raises:
        UserError: an argument is a single text, or the numbers differ.
    """
    if len(several(texts)) != len(several(pairs)):
        raise UserError(
            f"{counted(len(texts), 'text')} and {counted(len(pairs), 'second text')}: one for each is needed"
        )
    return texts, pairs
