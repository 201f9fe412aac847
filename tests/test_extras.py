"""The command that installs an optional library names the library, and never a name that somebody else may have."""

import re
import subprocess
import sys
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


@pytest.mark.slow
def test_the_source_works_as_it_lies(tmp_path):
    """As where a folder of a cluster has the source, and PYTHONPATH names it."""
    (tmp_path / "text.txt").write_text("one line of a text.\n" * 40)
    script = """
import importlib.metadata as metadata
known = metadata.distribution
def unknown(name):
    if name == "bakeoff":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.distribution = unknown
from bakeoff import Budget, load_recipe, prepare, pretrain
prepare(["text.txt"], "corpus", document_per_line=True, workers=0)
run = pretrain(load_recipe("none-encoder-tiny"), "corpus", "run", budget=Budget(steps=1), device="cpu", progress=False)
print(run.environment["versions"]["bakeoff"])
import sys
sys.argv = ["bakeoff", "--version"]
from bakeoff.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not installed\nbakeoff not installed, torch ")


def test_no_line_of_code_or_page_installs_bakeoff_by_its_name():
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        assert not re.search(r"pip install [\"'`]*bakeoff\b", path.read_text(encoding="utf-8")), path
