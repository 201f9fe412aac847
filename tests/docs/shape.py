"""Whether a command's output has the shape that a page shows; numbers, texts and times may differ.

The shape is the first column of every line that is not indented, with the numbers taken out. A page may leave lines out
(`...`), and shows no progress.
"""

import re

_NUMBER = re.compile(r"[+−-]?\d[\d,.]*(e[+-]?\d+)?")


def columns(text: str) -> list[str]:
    """What stands first in each line, without numbers."""
    lines = [line for line in text.splitlines() if line.strip() and line[0] not in " \t" and line.strip() != "..."]
    return [_NUMBER.sub("0", re.split(r"\s{2,}|\t", line.strip())[0]) for line in lines]


def missing(shown: str, printed: str) -> list[str]:
    """What the page shows and the command did not print, in this order."""
    rest = iter(columns(printed))
    return [column for column in columns(shown) if column not in rest]
