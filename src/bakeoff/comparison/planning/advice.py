"""Advice to give a command's options, in the words of a plan, which has keys in their place."""

import re

from bakeoff.errors import UserError
from bakeoff.reading.records import OPTION

_KEYS = {
    r"--task (\w+)": r"kind: \1",
    r"--errors (\w+)": r"errors: \1",
    r"--(\w+)-column": r"\1_column",
    r"--set (\w+\.)": r"set: \1",
    r"--set\b": "`set`",
    r"--grow (\d+)": r"grow: \1",
    r"--(grow|unshare)\b": r"`\1`",
}
"""Options of commands, and what a plan has for them."""


def in_a_plan(error: UserError, part: str = "") -> UserError:
    """An error of what a plan asks for, with the plan's keys in place of options of commands.

    Args:
        error: the error.
        part: the part of a task that has the settings which are options of commands; empty: the task itself.
    """
    text = re.sub(rf"{OPTION} (\w+)=([^\s,;)]+)", rf"\1: \2 in the task{part}", str(error))
    for option, key in _KEYS.items():
        text = re.sub(option, key, text)
    return UserError(text)
