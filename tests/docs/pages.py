"""What the pages of the documentation hold: blocks of commands, of Python and of files, each with its place.

A block is marked by HTML comments, which readers do not see, on lines of their own right above it:

    <!-- not run: REASON -->    it needs what a test does not have; the reason is required
    <!-- needs: NAME -->        it is run where this module of an extra, or this program, is installed
    <!-- file: NAME -->         it is the content of this file, which later blocks use

A block whose first line is `# NAME.yaml` (or .py, .txt) is a file, too.

`python -m tests.docs.pages` lists what is not run, with the reasons.
"""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("reference/*.md"))]

_BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n+)*)^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!-- (not run|needs|file): *(.*?) *-->")
_FILE = re.compile(r"# ([\w./-]+\.(?:yaml|py|txt))$")
_PROGRAMS = r"bakeoff|make|pip|python|\.venv/bin/\w+|seq|paste|cat|curl|[A-Za-z_]+=\S+ \w+"
_TYPED = re.compile(rf"^(\$ )?({_PROGRAMS})\b", re.MULTILINE)
_INLINE = re.compile(r"`(bakeoff [^`]+)`")
_CONTINUED = re.compile(r"\\\n\s*")


class Block(NamedTuple):
    """A block of a page."""

    page: str
    line: int
    kind: str
    """shell, python, file, or other."""

    text: str
    reason: str | None
    """Why it is not run."""

    needs: str | None
    """The module or program without which it is not run."""

    file: str | None

    language: str
    """As the page says it after the backticks."""

    @property
    def left_out(self) -> bool:
        """Whether it is not run here."""
        needs = self.needs or "re"
        return self.reason is not None or not (importlib.util.find_spec(needs) or shutil.which(needs))

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[tuple[str, str]]:
        """Of a shell block each command as it is typed, and the output that the page shows below it."""
        if not re.search(r"^\$ ", self.text, re.MULTILINE):
            return [(self.text, "")]
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [_cut(part) for part in parts]

    def calls(self) -> list[list[str]]:
        """The arguments of every call of `bakeoff`, as the shell would hand them over."""
        return [call for typed, _ in self.commands() for call in calls(typed)]


def _cut(part: str) -> tuple[str, str]:
    """A command of one line, or of several that end with a backslash, and what follows."""
    lines = part.splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if not line.endswith("\\\n")) + 1
    return "".join(lines[:end]), "".join(lines[end:])


def calls(typed: str) -> list[list[str]]:
    """The arguments of every call of `bakeoff` in some lines of shell."""
    found = []
    for line in _CONTINUED.sub(" ", typed).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>;()")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError:  # a quotation of several lines
            continue
        command: list[str] = []
        redirected = False
        for word in [*words, ";"]:
            if set(word) <= set("|&;()"):
                if "bakeoff" in command:
                    found.append(command[command.index("bakeoff") + 1 :])
                command = []
            elif set(word) <= set("<>"):
                redirected = True
            elif redirected:
                redirected = False
            else:
                command.append(word)
    return found


def blocks(page: Path) -> list[Block]:
    """The blocks of a page from top to bottom."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        comments = dict(_COMMENT.findall(match[1]))
        first = _FILE.match(match[3].partition("\n")[0])
        file = comments.get("file") or (first[1] if first else None)
        if file is not None:
            kind = "file"
        elif match[2] in ("sh", "console") or (match[2] == "" and _TYPED.search(match[3])):
            kind = "shell"
        else:
            kind = "python" if match[2] == "python" else "other"
        line = text.count("\n", 0, match.start(2)) + 1
        name = page.relative_to(ROOT).as_posix()
        found.append(Block(name, line, kind, match[3], *map(comments.get, ("not run", "needs")), file, match[2]))
    return found


def inline(page: Path) -> list[str]:
    """Calls of `bakeoff` within the prose of a page."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [" ".join(found.split()) for found in _INLINE.findall(prose)]


if __name__ == "__main__":
    for _page in PAGES:
        for _block in blocks(_page):
            if _block.reason or _block.needs:
                print(f"{_block.place}: {_block.reason or f'where {_block.needs} is installed'}")
