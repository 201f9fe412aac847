"""Speed of short convolutions, forward and backward, against alternatives in torch and the machine's copy rate.

The input has 8 rows of 512 tokens, width 512, 8 heads, in float32; kernels have 7 and 31 taps, fixed (light) or
predicted for each token (dynamic). The contestants take turns, and medians are printed, as a share of the best
alternative and as a multiple of the time to copy x.

    python benchmarks/short_conv.py [--kernels 7 31] [--rounds 15] [--no-compile]

Alternatives are grouped conv1d from and to (B, T, D), grouped conv1d on (B, D, T) (its own layout, which the rest of a
model does not have), unfolding with a matrix product, and a band matrix. They do not support documents: with documents,
ours is compared with their time without. Compile times are of forward and backward, with empty caches, in a process
that has started the compiler before.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from statistics import median

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.machine.capacity import processor_name
from bakeoff.ops.short_convolution import short_convolution
from bakeoff.resources.device import resolve_device

ROWS, LENGTH, WIDTH, HEADS = 8, 512, 512, 8
CHANNELS = WIDTH // HEADS

Convolution = Callable[[Tensor, Tensor], Tensor]


def both_sides(kernel: int, causal: bool) -> tuple[int, int]:
    return (kernel - 1, 0) if causal else (kernel // 2, kernel - 1 - kernel // 2)


def grouped(x: Tensor, weight: Tensor, causal: bool) -> Tensor:
    """Grouped conv1d in its own layout, (B, D, T)."""
    kernels = weight.repeat_interleave(CHANNELS, 0)[:, None]
    return F.conv1d(F.pad(x, both_sides(weight.shape[-1], causal)), kernels, groups=WIDTH)


def grouped_transposed(x: Tensor, weight: Tensor, causal: bool) -> Tensor:
    """Grouped conv1d from and to (B, T, D)."""
    return grouped(x.transpose(1, 2), weight, causal).transpose(1, 2)


def unfolded(x: Tensor, weight: Tensor, causal: bool) -> Tensor:
    kernel = weight.shape[-1]
    windows = F.pad(x, (0, 0, *both_sides(kernel, causal))).unfold(1, kernel, 1).unflatten(2, (HEADS, CHANNELS))
    return (windows @ (weight[..., None] if weight.dim() > 2 else weight[:, :, None])).flatten(2)


def band(x: Tensor, weight: Tensor, causal: bool) -> Tensor:
    kernel = weight.shape[-1]
    before, _ = both_sides(kernel, causal)
    taps = weight.expand(ROWS, LENGTH, HEADS, kernel).transpose(1, 2).flatten(0, 1)  # (B H, T, K)
    wide = LENGTH + kernel - 1
    matrix = taps.new_zeros(len(taps), LENGTH, wide)
    matrix.as_strided(taps.shape, (LENGTH * wide, wide + 1, 1)).copy_(taps)
    values = x.unflatten(-1, (HEADS, CHANNELS)).transpose(1, 2).flatten(0, 1)  # (B H, T, R)
    mixed = matrix[:, :, before : before + LENGTH] @ values
    return mixed.unflatten(0, (ROWS, HEADS)).transpose(1, 2).flatten(2)


def both_passes(function: Convolution, x: Tensor, weight: Tensor) -> Callable[[], None]:
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    upstream = torch.randn_like(x)

    def step() -> None:
        torch.autograd.grad(function(x, weight), (x, weight), upstream)

    return step


def measure(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each contestant, in turns, after two rounds to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for index in range(rounds + 2):
        for name, step in contestants.items():
            began = time.perf_counter()
            step()
            if index >= 2:
                times[name].append((time.perf_counter() - began) * 1e3)
    return {name: median(own) for name, own in times.items()}


def ours(compiled: bool, causal: bool, documents: Tensor | None) -> Convolution:
    function = short_convolution
    if compiled:
        torch._dynamo.reset()
        function = torch.compile(short_convolution, dynamic=False)
    return lambda x, weight: function(x, weight, causal=causal, documents=documents)


def compare(kernel: int, dynamic: bool, causal: bool, rounds: int, modes: list[str]) -> None:
    x = torch.randn(ROWS, LENGTH, WIDTH)
    weight = torch.randn(*((ROWS, LENGTH) if dynamic else ()), HEADS, kernel).softmax(-1)
    documents = torch.arange(LENGTH).div(150, rounding_mode="floor").expand(ROWS, -1) + 1
    alternatives = {"unfold": unfolded, "band matrix": band}
    if not dynamic:
        alternatives |= {"conv1d": grouped_transposed}
    steps: dict[str, Callable[[], object]] = {
        name: both_passes(lambda x, w, f=function: f(x, w, causal), x, weight)
        for name, function in alternatives.items()
    }
    if not dynamic:
        own_layout = x.transpose(1, 2).contiguous()
        steps["conv1d (B, D, T)"] = both_passes(lambda x, w: grouped(x, w, causal), own_layout, weight)
    others = list(steps)
    target = torch.empty_like(x)
    steps["copy"] = partial(target.copy_, x)
    compile_seconds = {}
    for mode in modes:
        for name, given in ((mode, None), (f"{mode}, documents", documents)):
            steps[name] = both_passes(ours(mode == "compiled", causal, given), x, weight)
            began = time.perf_counter()
            steps[name]()
            if mode == "compiled":
                compile_seconds[name] = time.perf_counter() - began
    middle = measure(steps, rounds)
    best = min(others, key=lambda name: middle[name])
    print(f"\n{'dynamic' if dynamic else 'light'}, K={kernel}, {'causal' if causal else 'centred'}")
    for name, value in middle.items():
        note = ", the best alternative" if name == best else ""
        if name in compile_seconds:
            note = f", compiled in {compile_seconds[name]:.1f} s"
        share = f"1/{middle[best] / value:.1f} of the best, " if name not in (*others, "copy") else ""
        print(f"  {name:22} {value:8.2f} ms   {share}{value / middle['copy']:.1f} copies{note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, nargs="+", default=[7, 31])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-compile", action="store_true", help="eager only, which takes a minute")
    options = parser.parse_args()
    resolve_device("cpu")  # flushes denormals, for all
    modes = ["eager"]
    if not options.no_compile:
        modes.append("compiled")
        torch.compile(lambda x: x.sin() + 1)(torch.randn(8))  # starts the compiler
    print(f"{processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for kernel in options.kernels:
        for dynamic in (False, True):
            for causal in (True, False):
                compare(kernel, dynamic, causal, options.rounds, modes)


if __name__ == "__main__":
    main()
