"""The demo's text: docstrings of the standard library and of the packages that Bakeoff itself needs."""

import inspect
import re
import sysconfig
from collections.abc import Iterator
from importlib import util
from pathlib import Path

STANDARD_LIBRARY = "python"
"""Name of the standard library among the packages."""

PACKAGES = ("altair", "networkx", "numpy", "pydantic", "rich", "scipy", "sklearn", "sympy", "torch", "torchmetrics")
"""Packages that are installed together with Bakeoff."""

_TRIPLE_QUOTED = re.compile(r'("""|\'\'\')(.*?)\1', re.DOTALL)

_LEFT_OUT = re.compile(r"(^|/)(tests?|testing|_?vendor(ed)?|site-packages|idlelib|lib2to3|turtledemo)(/|$)|(^|/)test_")


def package_folders() -> dict[str, Path]:
    """The folders with the sources of the standard library and of each installed package, by the package's name."""
    folders = {STANDARD_LIBRARY: Path(sysconfig.get_path("stdlib"))}
    for name in PACKAGES:
        spec = util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            folders[name] = Path(spec.submodule_search_locations[0])
    return folders


def docstrings(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The files of a package with their docstrings, read without importing or running anything.

    Every string in triple quotes counts, because torch and numpy add many docstrings by a call. A regular expression
    finds them ten times faster than Python's parser does.

    Args:
        folder: folder of the package's sources.

    Yields:
        The path of a file below the folder, and the file's docstrings, unindented.
    """
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder).as_posix()
        if not _LEFT_OUT.search(relative):
            source = path.read_text(encoding="utf-8", errors="replace")
            yield relative, [inspect.cleandoc(match[2]) for match in _TRIPLE_QUOTED.finditer(source)]


def prose(docstring: str) -> list[str]:
    """The paragraphs of plain sentences in a docstring: no examples, tables, signatures, parameters or markup."""
    kept = []
    for block in re.split(r"\n\s*\n", docstring):
        lines = [line.rstrip() for line in block.splitlines() if line.strip()]
        if not lines or any(re.match(r"\s*(>>>|\.\. |[-=~^*#]{3,}|:\w+|\||\+-)", line) for line in lines):
            continue
        if len({len(line) - len(line.lstrip()) for line in lines}) > 1:
            continue  # a parameter with its description
        text = " ".join(line.strip() for line in lines)
        text = re.sub(r":\w+:`~?([^`<]*?)(\s*<[^`>]*>)?`", r"\1", text).replace("``", "").replace("`", "")
        letters = sum(character.isalpha() or character == " " for character in text)
        if len(text) >= 40 and letters / len(text) > 0.85 and text[0].isupper() and text[-1] in ".:!?":
            kept.append(text)
    return kept
