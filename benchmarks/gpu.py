"""Everything that is to be known of a GPU, in one call of at most nine minutes; needs no network.

    python benchmarks/gpu.py [--device cuda] [--seconds 520] [--out gpu.json] [--smoke]

The machine needs torch with CUDA and the packages that Bakeoff requires (`pip wheel . -w wheels` where there is a
network, `pip install --no-index --find-links wheels bakeoff` where there is none); transformers is measured against
where it is installed. `--smoke` runs all of it, smaller, on a CPU in a minute. Results are written after every
measurement, so that a call that is cut short loses none, and what no time was left for is named.

1. Right: the losses of every kind of recipe against the CPU's; a step of each in which torch raises an error on a wait
   for the device; attention within documents against masks; stopped and resumed trainings, bit for bit.
2. Fast: bert-base at 128 and 512 tokens, gpt2-base at 1,024, laptop-hybrid-small, compiled, in bfloat16: tokens a
   second, share of the device's peak, seconds that a step waits for its batch, peak of memory; transformers' models of
   the same shape with its fastest attention; convolution against attention from 512 to 8,192 tokens.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_checks import Corpora, documents_against_masks, losses_against_cpu, resumed, steps_without_waits
from gpu_peaks import FORMULA, peak_of
from gpu_speed import GOALS, TRAININGS, against_length, limits, training, transformers_training

from bakeoff.conformance.narrow import ALIKE
from bakeoff.resources.device import device_name, resolve_device


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

    call.measure("limits", 5, lambda: limits(device, 256 if smoke else 8192, 0.1 if smoke else 2.0))
    call.measure("documents", 5, lambda: documents_against_masks(device, 2, 256))
    for title in TRAININGS:
        call.measure(title, 45, lambda title=title: training(title, device, each, smoke, peak))
    for title in GOALS:
        call.measure(
            f"transformers, {title}", 45, lambda title=title: transformers_training(title, device, each, smoke)
        )
    with tempfile.TemporaryDirectory() as folder:
        corpora = Corpora(Path(folder))
        names = sorted(ALIKE)[::8] if smoke else sorted(ALIKE)

        def until(share: float) -> float:
            """The end of a measurement that may take a share of the time that is left."""
            return time.monotonic() + share * max(0.0, call.ends - time.monotonic())

        call.measure("waits", 10, lambda: steps_without_waits(corpora, device, names, until(0.3)))
        call.measure("losses against the CPU", 10, lambda: losses_against_cpu(corpora, device, names, until(0.4)))
        call.measure("resumed", 20, lambda: resumed(corpora, device, Path(folder), smoke))
    for length in (64, 128) if smoke else (512, 1024, 2048, 4096, 8192):
        call.measure(
            f"convolution against attention at {length}",
            10,
            lambda length=length: against_length(length, device, smoke),
        )

    for title, goal in GOALS.items():
        result = call.results.get(title)
        if isinstance(result, dict) and device.type == "cuda":
            print(f"{title}: {result['tokens/s']:,} tokens/s, of a goal of {goal:,} on one H100 SXM")
    print(f"failed or left out: {', '.join(call.failed) or 'nothing'}")
    return 1 if call.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
