"""Texts of a caller: some where several are wanted, and as many second texts as first ones."""

from collections.abc import Sequence

from bakeoff.errors import UserError


def several(texts: Sequence[str]) -> Sequence[str]:
    """Refuse a text where a sequence of them is wanted, whose letters would be taken for texts.

    Raises:
        UserError: it is a text.
    """
    if isinstance(texts, str):
        raise UserError(f"texts: a list of texts is wanted, and this is one ('{texts[:30]}'); put it into a list")
    return texts


def as_long(texts: Sequence[str], pairs: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Refuse texts without a second text each.

    Raises:
        UserError: one of both is a single text, or they are not as many.
    """
    if len(several(texts)) != len(several(pairs)):
        raise UserError(f"{len(texts)} texts and {len(pairs)} second texts: one for each is needed")
    return texts, pairs
