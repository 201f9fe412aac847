"""The libraries that are installed, and optional ones: which an extra brings, and the command that installs them."""

import re
import shlex
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from bakeoff.errors import UserError


def version_of(package: str) -> str:
    """The version of a package, or `not installed`, as Bakeoff itself is where its source is used as it lies."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def installation(extra: str) -> str:
    """The command that installs the libraries of an extra, by their own names.

    The extra is not named as `bakeoff[EXTRA]`: pip would look that name up in an index, where it may be another's.
    """
    try:
        needed = requires("bakeoff") or []
    except PackageNotFoundError:  # the package is imported from a folder that was never installed
        needed = []
    of_extra = re.compile(rf"""\bextra\s*==\s*["']{re.escape(extra)}["']""")
    libraries = [need.partition(";")[0].strip() for need in needed if of_extra.search(need)]
    if not libraries:
        return f'pip install -e ".[{extra}]" in Bakeoff\'s folder'
    return f"pip install {' '.join(map(shlex.quote, libraries))}"


def missing(what: str, extra: str) -> UserError:
    """The error about a library that is not installed.

    Args:
        what: the option or file that needs it, and the library: "--ray needs Ray".
        extra: the extra that brings it.
    """
    return UserError(f"{what}, which is not installed; run {installation(extra)}")


def library(name: str, extra: str) -> Any:
    """Import an optional library for an export.

    Raises:
        UserError: the library is not installed; `extra` names the form, and the extra of Bakeoff that brings it.
    """
    try:
        return import_module(name)
    except ImportError:
        raise missing(f"--to {extra} needs the library {name.partition('.')[0]}", extra) from None
