"""The reference of the command line: each verb with its options, as `--help` has them, in Markdown."""

import re
from typing import Any

import typer.main

from bakeoff.cli.app import app
from bakeoff.config import LARGEST

_NOTE = re.compile(r"\s*\[([^\][]*(?:required|default|<=|>=)[^\][]*)\]$")
"""What the help has in brackets after a description: whether an option is required, its bounds and its default."""

_VALUES = {
    "<str>": "TEXT",
    "<list[str]>": "TEXT",
    "<path>": "PATH",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
}
"""Shorter words for the types that the help names where an option has no word of its own."""


def group() -> Any:
    """The command with all verbs."""
    return typer.main.get_command(app)


def verbs() -> list[str]:
    """The verbs in the order in which `bakeoff --help` lists them."""
    return list(group().commands)


def command(verb: str) -> str:
    """A verb: what it does, its examples, and a table of its arguments and options.

    Raises:
        KeyError: there is no such verb.
    """
    whole = group()
    found = whole.commands[verb]
    with whole.make_context("bakeoff", [verb, "--help"], resilient_parsing=True) as above:
        context = found.make_context(verb, [], parent=above, resilient_parsing=True)
    paragraphs = [" ".join(text.split()) for text in found.help.split("\n\n")]
    examples = [text.removeprefix("Example: ") for text in paragraphs if text.startswith("Example: ")]
    said = [plain(text) for text in paragraphs if not text.startswith("Example: ")]
    shown = ["```sh\n" + "\n".join(examples) + "\n```"] if examples else []
    parameters = sorted(found.params, key=lambda parameter: parameter.param_type_name)  # arguments, then options
    rows = [_row(parameter, context) for parameter in parameters]
    table = (
        ["\n".join(["| argument or option | | default |", "|---|---|---|", *filter(None, rows)])] if any(rows) else []
    )
    return "\n\n".join([*said, *shown, *table])


def _row(parameter: Any, context: Any) -> str:
    """A row of the table: the option as it is typed, what it does, and what holds without it."""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    typed, said = record
    notes: list[str] = []
    if found := _NOTE.search(said):
        notes = [_note(part.strip()) for part in found[1].split(";")]
        said = said[: found.start()]
    if parameter.param_type_name == "argument":
        several = "..." if parameter.nargs == -1 else ""
        shown = f"`{parameter.name.upper()}{several}`"
    else:
        names = " / ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        metavar = " ".join(word for word in typed.split() if not word.startswith("-") and word != "/")
        shown = f"{names} `{_VALUES.get(metavar, metavar.strip('<>'))}`" if metavar else names
    return f"| {' | '.join(map(in_a_cell, (shown, plain(said), ', '.join(notes))))} |"


def _note(text: str) -> str:
    """A note of the help in short: a default as it is typed, or bounds."""
    if text.startswith("default: "):
        return f"`{text.removeprefix('default: ')}`"
    low, _, high = text.partition("<=x<=")
    if high:
        return f"≥ {low}" if high == str(LARGEST) else f"{low} to {high}"
    return text.replace("x>=", "≥ ")


def in_a_cell(text: str) -> str:
    """A text in a table, whose columns are parted by bars where these do not stand between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("|", "&#124;") for part in parts)


def plain(text: str) -> str:
    """A text that Markdown shows as it is, but for what stands between backticks and pages that it names."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    shown = [part if part.startswith("`") else re.sub(r"([*_<>\[\]{}])", r"\\\1", part) for part in parts]
    return re.sub(r"\bdocs/([\w-]+)\.md\b", r"[\1](../\1.md)", "".join(shown))
