"""Plants faults in a copy of the package, one at a time, and asks whether the tests notice: `make mutants`.

The copy stands in `.mutants`; the working tree is only read. Each fault has the tests that run its line
(`baseline.py`), quickest first, until one fails, in a process forked from one that has imported torch already.
"""

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.mutants.baseline import ROOT, Baseline, baseline, preload
from tests.mutants.mutations import Mutant, of_sources, sites

PACKAGE = Path("src/bakeoff")
AREAS = {
    "models": "models/**/*.py",
    "ops": "ops/*.py",
    "formats": "formats/*.py",
    "objectives": "objectives/*.py",
    "batching": "batching/*.py",
    "optimization": "optimization/**/*.py",
    "generation": "generation/*.py",
    "scoring": "scoring/*.py",
    "using": "using/*.py",
    "tasks": "tasks/**/*.py",
    "vectors": "vectors/*.py",
    "interop": "interop/**/*.py",
    "statistics": "comparison/statistics/pairs.py",
}
"""Which files faults are planted in at random."""
SURVIVORS = ("survived", "no test")
STARTING = 40.0
"""Seconds that a process may take until its first test."""


class Chosen:
    """A pytest plugin that runs some tests in a given order."""

    def __init__(self, tests: list[str]) -> None:
        self.places = {name: place for place, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list) -> None:
        """Leave the others out."""
        items[:] = sorted((item for item in items if item.nodeid in self.places), key=lambda i: self.places[i.nodeid])


def outcome(known: Baseline, mutant: Mutant, most: float) -> str:
    """`noticed`, `survived`, `too slow` (which is noticed as well), or `no test`."""
    tests = known.tests(mutant, most)
    if not tests:
        return "no test"
    path = known.tree / mutant.file
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        process = os.fork()
        if process == 0:
            os._exit(_child(known, tests))
        ends = time.monotonic() + STARTING + 3 * sum(known.seconds[name] for name in tests)
        while time.monotonic() < ends:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return "survived" if status == 0 else "noticed"
            time.sleep(0.02)
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return "too slow"
    finally:
        path.write_text(original, encoding="utf-8")


def _child(known: Baseline, tests: list[str]) -> int:
    """Run the tests in this process; 0: none failed."""
    import pytest

    tree, longest = known.tree, max(known.seconds[name] for name in tests)
    os.setsid()
    with open(tree.parent / "last.log", "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    os.environ["PYTHONPATH"] = str(tree / "src")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "bakeoff")]:
        del sys.modules[name]
    files = sorted({name.partition("::")[0] for name in tests})
    options = f"-x -p no:cacheprovider --hypothesis-seed=0 --timeout={10 + 10 * longest}".split()
    options += ["-m", "not slow", "-W", "ignore:Module already imported"]  # of pytest's plugins, which were preloaded
    return int(pytest.main([*options, *files], plugins=[Chosen(tests)]))


def sampled(count: int, seed: int) -> Iterator[tuple[str, Mutant]]:
    """Faults at random, each with its area."""
    files = [(area, path) for area, pattern in AREAS.items() for path in sorted((ROOT / PACKAGE).glob(pattern))]
    every = [(area, site) for area, path in files for site in sites(ROOT, str(path.relative_to(ROOT)))]
    print(f"{len(every)} faults are possible in {len(files)} files")
    for area, site in random.Random(seed).sample(every, min(count, len(every))):
        yield area, site.mutant()


def planted() -> Iterator[tuple[str, Mutant]]:
    """The faults of `planted.yaml`."""
    entries = yaml.safe_load(Path(__file__).with_name("planted.yaml").read_text(encoding="utf-8"))
    for file, faults in entries.items():
        source = (ROOT / PACKAGE / file).read_text(encoding="utf-8")
        for before, after in faults:
            assert source.count(before) == 1, f"planted.yaml: {file} has {source.count(before)} times {before!r}"
            yield "planted", of_sources(str(PACKAGE / file), source, source.replace(before, after), "planted")


def main() -> int:
    """Print each survivor and a table; 1 if a planted fault survived that `harmless.yaml` does not name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="faults at random; all planted ones are run as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the tests of one fault, where there is none")
    arguments = parser.parse_args()
    named = yaml.safe_load(Path(__file__).with_name("harmless.yaml").read_text(encoding="utf-8")) or {}
    harmless = {(str(PACKAGE / file), before, after) for file, each in named.items() for before, after, _ in each}
    known = baseline(ROOT / ".mutants")
    preload(known.modules)
    control = PACKAGE / "models" / "model.py"  # without a fault: otherwise everything would seem to be noticed
    source = (ROOT / control).read_text(encoding="utf-8")
    if outcome(known, Mutant(str(control), 0, "none", "", "", source), arguments.seconds) != "survived":
        raise SystemExit(f"a test fails where no fault is planted; see {known.tree.parent / 'last.log'}")
    table: dict[str, Counter[str]] = {}
    for area, mutant in [*planted(), *sampled(arguments.count, arguments.seed)]:
        began = time.monotonic()
        result = outcome(known, mutant, arguments.seconds)
        if result in SURVIVORS and (mutant.file, mutant.before, mutant.after) in harmless:
            result = "harmless"
        table.setdefault(area, Counter())[result] += 1
        print(f"{result}  {mutant.file}:{mutant.line}  {time.monotonic() - began:.1f} s", flush=True)
        if result in SURVIVORS:
            print(f"    - {mutant.before}\n    + {mutant.after}", flush=True)
    for area, results in table.items():
        counts = ", ".join(f"{count} {result}" for result, count in results.most_common())
        print(f"{area:14}{sum(results.values()):5} faults: {counts}")
    return int(any(table["planted"][result] for result in SURVIVORS))


if __name__ == "__main__":
    sys.exit(main())
