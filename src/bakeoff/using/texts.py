"""Checks of texts from a caller."""

from collections.abc import Sequence

from bakeoff.errors import UserError
from bakeoff.tasks.predict import require_one_each


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
    require_one_each(several(texts), several(pairs))
    return texts, pairs
