"""Names of recipes, seeds and tasks: which directories they have, and which cannot stand beside each other."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Literal

OF_PRETRAINING = r"pretrain|after-.*-percent"
"""The names of directories beside those of tasks: of a pre-training, and of what goes on from shares of its budget."""

LONGEST_DIRECTORY = 200
"""The most bytes of a directory's name, which file systems bound by 255, with what names of files add to it."""

MOST_SEEDS = 10_000
"""The most seeds that a number stands for: each has a directory in that of every recipe."""

UNPRINTED = ("Cc", "Zl", "Zp")
"""The categories of characters that would break lines and tables of a report."""


def directory_name(label: str) -> str:
    """A label's directory name: letters of any script, digits, dots and underscores, with hyphens for all else."""
    return re.sub(r"[^\w.]+", "-", label).strip("-.") or "recipe"


def check_names(what: Literal["recipes", "tasks"], names: Sequence[str]) -> None:
    """Refuse names that a report or a directory cannot have, and those that two have.

    Raises:
        ValueError: a name is blank, has line breaks or control characters, is too long, or stands for another one, too.
    """
    by_directory: dict[str, str] = {}
    for name in names:
        if not name.strip() or any(unicodedata.category(each) in UNPRINTED for each in name):
            raise ValueError(f"{what}: {name!r} is no name; give one of visible characters, on one line")
        directory = directory_name(name).casefold()
        if (size := len(directory.encode())) > LONGEST_DIRECTORY:
            raise ValueError(f"{what}: '{name}' makes a directory's name of {size} bytes; give a shorter `name`")
        if what == "tasks" and re.fullmatch(OF_PRETRAINING, directory):
            raise ValueError(f"a task '{name}' would share a directory with the pre-training; give it another `name`")
        other = by_directory.setdefault(directory, name)
        if Counter(names)[name] > 1:
            raise ValueError(f"two {what} are called '{name}'; give one another `name`")
        if other != name:
            raise ValueError(f"{what} '{other}' and '{name}' would share a directory; rename one of them")
