"""The command that installs an optional library names the library, and never a name that somebody else may have."""

import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from bakeoff import extras

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("extra", ["hub", "ray", "web", "onnx", "gguf", "track"])
def test_it_names_what_pyproject_does(extra):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(rf"^{extra} = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    command = extras.installation(extra)
    assert command == "pip install " + " ".join(f"'{need}'" for need in re.findall(r'"([^"]+)"', needed[1]))


def test_without_metadata_it_is_the_folders_own_extra(monkeypatch):
    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", unknown)
    assert extras.installation("onnx") == 'pip install -e ".[onnx]" in Bakeoff\'s folder'


def test_no_line_of_code_or_page_installs_bakeoff_by_its_name():
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        assert not re.search(r"pip install [\"'`]*bakeoff\b", path.read_text(encoding="utf-8")), path
