"""Text of others as people may see it: nothing in it is obeyed by what shows it."""

import re

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of both kinds (C0, C1), which a terminal obeys; ends of lines and paragraphs; what turns the order
of the characters around it, so that a name can rewrite the number beside it; and halves of surrogate pairs, in which
Python keeps what is not UTF-8 and which cannot be written. Marks of direction (U+200E, U+200F) turn nothing around."""


def visible(text: str, keep: str = "") -> str:
    r"""A text with its control characters as escapes, such as `\x1b`.

    Args:
        text: any text.
        keep: control characters that stay as they are.
    """
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def visible_json(text: str) -> str:
    r"""JSON with control characters as escapes, such as `\u009b`, which mean the same to whoever reads it."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in "\n\t\r" else f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
