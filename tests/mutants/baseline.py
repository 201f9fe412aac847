"""A copy of the package, and what is known of its tests where no fault is planted in it.

All tests of `TESTS` are run once, to learn which of them run which lines (`lines.py`), and again when the package or
the tests have changed.
"""

import compileall
import contextlib
import hashlib
import importlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import coverage

from tests.mutants.mutations import Mutant

ROOT = Path(__file__).parents[2]
TESTS = [f"tests/{name}" for name in ("ops", "models", "formats", "objectives", "batching", "optimization", "tasks")]
TESTS += [f"tests/{name}" for name in ("training", "generation", "scoring", "inspection", "published", "conformance")]
TESTS += ["tests/vectors", "tests/interop", "src/bakeoff/conformance"]
TESTS += ["tests/test_recipe.py", "tests/comparison/test_statistics.py"]
TESTS += ["tests/cli/test_scores.py", "tests/cli/test_evaluate_minimal_pairs.py"]
NOT_PRELOADED = ("bakeoff", "tests", "pytest", "_pytest", "hypothesis", "_hypothesis", "anyio", "coverage", "conftest")
"""What is mutated, and plugins of pytest, which it imports in its own way."""


class Baseline(NamedTuple):
    """What is known of the tests where no fault is planted."""

    tree: Path
    """The copy."""
    seconds: dict[str, float]
    """Of each test."""
    modules: list[str]
    """All that they import."""
    lines: coverage.CoverageData
    """Which tests run which lines."""

    def tests(self, mutant: Mutant, most: float) -> list[str]:
        """The tests that run the mutant's line, quickest first, as many as take `most` seconds.

        Of a line that is run at import alone, or is part of a longer statement, those that run anything of its file.
        """
        contexts = self.lines.contexts_by_lineno(str(self.tree / mutant.file))
        found = set(contexts.get(mutant.line, [])) - {""}
        if not found:
            found = {name for names in contexts.values() for name in names} - {""}
        chosen, total = list[str](), 0.0
        for name in sorted(found & self.seconds.keys(), key=lambda name: self.seconds[name]):
            total += self.seconds[name]
            if total > most and chosen:
                break
            chosen.append(name)
        return chosen


def baseline(folder: Path) -> Baseline:
    """The copy, below that folder, and what is known of it."""
    tree, digest = folder / "tree", hashlib.sha256()
    for path in sorted(path for top in ("src", "tests") for path in (ROOT / top).rglob("*")):
        if path.suffix in (".py", ".yaml") and path.parent != Path(__file__).parent:
            digest.update(path.read_bytes())
    known = folder / digest.hexdigest()[:16]
    if not (known / "tests.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        known.mkdir(parents=True)
        for top in ("src", "tests", "docs"):
            shutil.copytree(ROOT / top, tree / top, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        shutil.copy(ROOT / "pyproject.toml", tree)
        # By content and not by time, or a mutant of the same second and size would be taken for the original.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(tree / "src", quiet=1, invalidation_mode=mode)
        shutil.copy(Path(__file__).with_name("lines.py"), known)
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{known}", "MUTANTS_BASELINE": str(known)}
        command = [sys.executable, "-m", "pytest", "-p", "lines", "-m", "not slow", *TESTS]
        if subprocess.run(command, cwd=tree, env=environment, check=False).returncode:
            print("tests that fail where no fault is planted are left out")
    found = json.loads((known / "tests.json").read_text(encoding="utf-8"))
    lines = coverage.CoverageData(str(known / "lines"))
    lines.read()
    return Baseline(tree, found["seconds"], found["modules"], lines)


def preload(modules: Iterable[str]) -> None:
    """Import what the tests import of others, so that forked processes have it."""
    for name in modules:
        if not name.startswith(NOT_PRELOADED) and name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
