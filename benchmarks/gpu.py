"""Everything that is to be known of a GPU, in one call of at most nine minutes; needs no network.

    python benchmarks/gpu.py [--device cuda] [--seconds 520] [--out gpu.json] [--smoke]

The machine needs torch with CUDA and the packages that Bakeoff requires (`pip wheel . -w wheels` where there is a
network, `pip install --no-index --find-links wheels bakeoff` where there is none), and this folder with `tests` beside
it; transformers is measured against where it is installed. `--smoke` runs all of it, smaller, on a CPU in two minutes.
Results are written after every measurement, so that a call that is cut short loses none, and what no time was left for
is named.

1. Right: the tests that have a device (`pytest tests/device --device cuda`; where there is no pytest, their checks
   alone): gradients of every tiny recipe, resumed trainings, written tokens, scores, attention against the CPU's; and a
   step of every kind of recipe in which torch raises an error on a wait for the device.
2. Fast: bert-base at 128 and 512 tokens, gpt2-base at 1,024, laptop-hybrid-small, compiled, in bfloat16: tokens a
   second, share of the device's peak, seconds that a step waits for its batch, peak of memory; small models with and
   without CUDA graphs; convolution against attention from 512 to 8,192 tokens; transformers' models of the shapes of
   the first three with its fastest attention.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_checks import steps_without_waits
from gpu_peaks import FORMULA, peak_of
from gpu_speed import GOALS, TRAININGS, against_length, limits, replayed, training, transformers_training

from bakeoff.conformance.narrow import ALIKE
from bakeoff.machine.capacity import usable_cores
from bakeoff.resources.device import device_name, resolve_device

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.device.checks import CHECKS, Corpora  # noqa: E402

SECONDS = {
    "limits": 5,
    "tests": 60,
    "waits": 45,
    "a training": 40,
    "graphs": 30,
    "a length": 8,
    "transformers": 55,
}
"""The seconds of each part, of which some come more than once: 5 + 60 + 45 + 4 * 40 + 30 + 5 * 8 + 3 * 55 = 505.

A part is begun only if so many are left; the tests and the waits end by themselves when theirs are over."""


WORKERS = 9
"""The largest number of processes that share the tests of a GPU, where pytest-xdist is installed."""


class Call:
    """The measurements of one call: the time that is left, and the results so far."""

    def __init__(self, seconds: float, out: Path | None) -> None:
        self.ends, self.out = time.monotonic() + seconds, out
        self.results: dict[str, Any] = {}

    def measure(self, name: str, needed: float, measurement: Callable[[], Any]) -> None:
        """Make a measurement if so many seconds are left, and write and print what comes of it."""
        began = time.monotonic()
        if self.ends - began < needed:
            result: Any = "left out: no time was left"
        else:
            try:
                result = measurement()
            except Exception as error:  # the others are measured all the same
                result = f"failed: {type(error).__name__}: {error}"
                traceback.print_exc()
        self.results[name] = result
        print(f"{name} ({time.monotonic() - began:.1f} s): {json.dumps(result)}", flush=True)
        if self.out is not None:
            self.out.write_text(json.dumps(self.results, indent=2) + "\n", encoding="utf-8")

    @property
    def failed(self) -> list[str]:
        """The measurements that failed, found something wrong, or were left out."""
        return [name for name, result in self.results.items() if isinstance(result, str) or _wrong(result)]


def _wrong(result: Any) -> bool:
    return isinstance(result, dict) and bool(result.get("wrong"))


def tests(device: torch.device) -> dict[str, Any]:
    """The tests that have a device: how many passed, and what failed."""
    if importlib.util.find_spec("pytest") is None:
        return checks(device)
    seconds = SECONDS["tests"]
    words = ["-m", "pytest", "tests/device", "-m", "device", "--device", str(device), "--tb=line", "-rfE"]
    words += ["-p", "no:cacheprovider", "-W", "default", f"--most-seconds={seconds - 20}"]
    if device.type != "cpu" and importlib.util.find_spec("xdist") is not None:
        words += ["-n", str(min(WORKERS, max(1, usable_cores() - 1)))]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=2 * seconds
    )
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)}
    wrong = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode and not wrong:
        wrong = [(done.stdout + done.stderr)[-2000:]]
    return {"by": "pytest", **counts, "wrong": wrong}


def checks(device: torch.device) -> dict[str, Any]:
    """The checks of these tests, called by themselves, for a machine without pytest."""
    ends, wrong, left_out, passed = time.monotonic() + SECONDS["tests"] - 20, {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        corpora = Corpora(Path(folder))
        for check in CHECKS:
            for name in check.on_cpu if device.type == "cpu" else check.names:
                if time.monotonic() > ends:
                    left_out += 1
                    continue
                try:
                    check.function(name, device, corpora)
                    passed += 1
                except Exception as error:  # the others are checked all the same
                    wrong[f"{check.function.__name__}-{name}"] = f"{type(error).__name__}: {error}"
    return {"by": "their checks alone, for there is no pytest", "passed": passed, "skipped": left_out, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="cuda, cuda:N or cpu")
    parser.add_argument("--seconds", type=float, default=520.0, help="time for everything")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument("--smoke", action="store_true", help="all of it, smaller, to see that it runs")
    asked = parser.parse_args()
    device, smoke = resolve_device("cpu" if asked.smoke and asked.device == "auto" else asked.device), asked.smoke
    call, name = Call(asked.seconds, asked.out), device_name(device)
    peak = peak_of(name) if device.type == "cuda" else None
    print(f"{device} ({name}), torch {torch.__version__}; {FORMULA}; peak {peak or 'not known'}", flush=True)
    call.results["machine"] = {"device": name, "torch": torch.__version__, "peak": peak}
    each = 0.2 if smoke else 8.0

    call.measure("limits", SECONDS["limits"], lambda: limits(device, 256 if smoke else 8192, 0.1 if smoke else 2.0))
    call.measure("tests", SECONDS["tests"], lambda: tests(device))
    with tempfile.TemporaryDirectory() as folder:
        names, ends = sorted(ALIKE)[::8] if smoke else sorted(ALIKE), time.monotonic() + SECONDS["waits"]
        call.measure("waits", SECONDS["waits"], lambda: steps_without_waits(Corpora(Path(folder)), device, names, ends))
    for title in TRAININGS:
        call.measure(title, SECONDS["a training"], lambda title=title: training(title, device, each, smoke, peak))
    call.measure("graphs", SECONDS["graphs"], lambda: replayed(device, each / 4, smoke))
    for length in (64, 128) if smoke else (512, 1024, 2048, 4096, 8192):
        call.measure(
            f"convolution against attention at {length}",
            SECONDS["a length"],
            lambda length=length: against_length(length, device, smoke),
        )
    for title in GOALS:
        call.measure(
            f"transformers, {title}",
            SECONDS["transformers"],
            lambda title=title: transformers_training(title, device, each, smoke),
        )

    for title, goal in GOALS.items():
        result = call.results.get(title)
        if isinstance(result, dict) and device.type == "cuda":
            print(f"{title}: {result['tokens/s']:,} tokens/s, of a goal of {goal:,} on one H100 SXM")
    print(f"failed or left out: {', '.join(call.failed) or 'nothing'}")
    return 1 if call.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
