"""Builds the site of the documentation: `python -m docs.site.build FOLDER`, which `make docs` does with `site`.

The pages are those of docs/, with CONTRIBUTING.md and CHANGELOG.md beside them; in those of docs/reference a line

    <!-- command VERB -->     is a verb's options
    <!-- keys NAME -->        is the keys of a config and of all that it contains
    <!-- kinds NAME -->       is the keys of all parts of one sort

made from the docstrings of the program. The site is opened as a file, and loads nothing from elsewhere.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from docs.site import commands, keys

from bakeoff.durable import remove

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff")
"""Files of the root that are part of the site."""

_MARKER = re.compile(r"^<!-- (command|keys|kinds) ([\w-]+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--(?:(?!-->).)*-->\n+", re.MULTILINE)
_HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)


@cache
def expanded(page: Path) -> str:
    """The text of a page of docs/reference with what its markers stand for."""
    text = page.read_text(encoding="utf-8")
    return _MARKER.sub(lambda found: _generated(found, text, page.name), text)


def _generated(found: re.Match[str], text: str, name: str) -> str:
    if found[1] == "command":
        return commands.command(found[2])
    seen_from_here = {config: address.removeprefix(name) for config, address in places().items()}
    wanted = keys.sections(f"{found[1]} {found[2]}", *_above(text, found.start()))
    return "\n\n".join(keys.markdown(section, seen_from_here) for section in wanted)


def _above(text: str, place: int) -> tuple[int, str]:
    """The heading above a place of a page: its level, and its anchor."""
    signs, heading = _HEADING.findall(_FENCE.sub("", text[:place]))[-1]
    return len(signs), re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@cache
def places() -> keys.Places:
    """Where each config is documented: page and anchor."""
    found_at: keys.Places = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for found in _MARKER.finditer(text):
            if found[1] != "command":
                for section in keys.sections(f"{found[1]} {found[2]}", *_above(text, found.start())):
                    found_at.setdefault(section.config, f"{page.name}#{section.anchor}")
    return found_at


def stage(folder: Path) -> None:
    """Write the pages, and what else the site consists of, into a folder."""
    docs = ROOT / "docs"
    for path in docs.rglob("*.*"):
        if path.suffix in (".md", ".png", ".svg") and path.is_file():
            to = folder / path.relative_to(docs).as_posix().replace("README.md", "index.md")
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                text = expanded(path) if path.parent.name == "reference" else path.read_text(encoding="utf-8")
                to.write_text(_for_the_site(text, "../" if path.parent == docs else ""), "utf-8")
            else:
                shutil.copyfile(path, to)
    for name in BESIDE:
        text = (ROOT / name).read_text(encoding="utf-8")
        (folder / name).write_text(_for_the_site(text, "docs/") if name.endswith(".md") else text, "utf-8")
    (folder / "assets").mkdir()
    for name in ("iframe-worker.js", "extra.css"):
        shutil.copyfile(HERE / name, folder / "assets" / name)


def _for_the_site(text: str, left_out: str) -> str:
    """A page without the comments that say how its commands are tested, with links between the site's pages.

    Args:
        text: the page.
        left_out: what its links to pages of another folder of the repository begin with, which is one in the site.
    """
    shown = _COMMENT.sub("", text)
    if left_out:
        shown = shown.replace(f"]({left_out}", "](")
    return shown.replace("](README.md", "](index.md")


def build(site: Path) -> None:
    """Build the site into a folder, where another one may stand that it replaces.

    Raises:
        SystemExit: the folder is something else; a link leads nowhere, or another mistake, with what Zensical says.
    """
    if site.exists() and not (site / "404.html").exists():
        raise SystemExit(f"{site}: exists and is no site; choose another folder")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        stage(work / "docs")
        config = (HERE / "mkdocs.yml").read_text(encoding="utf-8").replace("SOURCE", str(ROOT / "src"))
        (work / "mkdocs.yml").write_text(config, encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "mkdocs.yml"]
        ended = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode != 0:
            raise SystemExit(re.sub(r"\x1b\[[\d;]*m", "", ended.stdout).partition("Traceback")[0])
        if site.exists():
            remove(site)
        shutil.copytree(work / "site", site)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
