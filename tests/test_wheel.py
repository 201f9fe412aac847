"""The wheel holds all that the package does, so that it runs without the repository."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bakeoff"


@pytest.mark.slow  # the tools that build it are fetched
def test_the_wheel_holds_every_file_of_the_package_and_the_command(tmp_path):
    source = tmp_path / "source"
    copied = ("pyproject.toml", "README.md", "LICENSE", "src")
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, source], check=True)
    assert all((source / name).exists() for name in copied)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", tmp_path / "dist", source], check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("bakeoff-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=source, check=True, capture_output=True, text=True)
    wanted = {line.removeprefix("src/") for line in tracked.stdout.splitlines()}
    assert {name for name in names if ".dist-info/" not in name} == wanted
    entry = next(name for name in names if name.endswith("entry_points.txt"))
    assert "bakeoff = bakeoff.__main__:main" in zipfile.ZipFile(wheel).read(entry).decode()


def test_python_m_bakeoff_is_the_same_command():
    process = subprocess.run([sys.executable, "-m", "bakeoff", "--help"], capture_output=True, text=True, check=True)
    assert "Pre-train language models" in process.stdout


def test_every_kind_of_file_of_the_package_is_declared():
    """A file that setuptools is not told of is missing from the wheel alone, where no other test looks."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = text.partition("[tool.setuptools.package-data]")[2].partition("\n\n")[0]
    patterns = [each for each in declared.split('"') if "." in each and "=" not in each]
    found = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    covered = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    assert found - covered == set()
