"""Texts of others, made safe for display: no character in them controls the terminal or page that shows them."""

import re

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters to escape: control characters (C0, C1), which a terminal obeys; separators of lines and paragraphs;
characters that change the direction of text, by which a name could rewrite the number beside it; and halves of
surrogate
pairs, in which Python keeps bytes that are not UTF-8 and which cannot be written. Marks of direction (U+200E, U+200F)
change nothing around them and stay."""


def visible(text: str, keep: str = "") -> str:
    r"""A text with its control characters as escapes, such as `\x1b`.

    Args:
        text: any text.
        keep: control characters that stay as they are.
    """
    return _OBEYED.sub(lambda match: match[0] if match[0] in keep else escaped(match[0]), text)


def visible_json(text: str) -> str:
    r"""JSON with control characters as equivalent escapes, such as `\u009b`."""
    return _OBEYED.sub(lambda match: match[0] if match[0] in "\n\t\r" else f"\\u{ord(match[0]):04x}", text)


def escaped(characters: str) -> str:
    r"""Characters as escapes, such as `\x1b`."""
    return characters.encode("unicode_escape").decode("ascii")
