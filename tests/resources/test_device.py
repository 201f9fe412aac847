import platform
import subprocess
import sys

import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.resources import device
from bakeoff.resources.device import peak_memory, reset_peak_memory, resolve_device, resolve_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("given", ["cpu", CPU])
def test_a_device_or_its_name(given):
    assert resolve_device(given) == CPU


def test_what_is_no_device_is_refused():
    with pytest.raises(UserError, match="--device 3: unknown device"):
        resolve_device(3)


PROCESSORS = [
    ("Intel(R) Xeon(R) Platinum 8488C", {"amx_bf16": True, "avx512_bf16": True}, "bfloat16"),
    ("AMD EPYC 9R14", {"amx_bf16": False, "avx512_bf16": True}, "bfloat16"),
    ("Intel(R) Xeon(R) Processor", {"amx_bf16": False, "avx512_bf16": True}, "float32"),
    ("Intel(R) Xeon(R) Processor", {"amx_bf16": True, "avx512_bf16": False}, "bfloat16"),
    ("AMD EPYC 7R13", {"amx_bf16": False, "avx512_bf16": False, "avx512_f": True}, "float32"),
    ("another architecture", {}, "float32"),
]


@pytest.mark.parametrize(("name", "capabilities", "precision"), PROCESSORS)
def test_auto_precision_follows_the_processor(monkeypatch, name, capabilities, precision):
    monkeypatch.setattr(device, "processor_name", lambda: name)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert resolve_precision("auto", CPU) == precision


@pytest.mark.parametrize(("name", "capabilities", "precision"), PROCESSORS)
def test_a_torch_that_does_not_list_capabilities_is_asked_otherwise(monkeypatch, name, capabilities, precision):
    monkeypatch.setattr(device, "processor_name", lambda: name)
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: capabilities.get("amx_bf16", False))
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: capabilities.get("avx512_bf16", False))
    assert resolve_precision("auto", CPU) == precision


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_chosen_precision_is_kept(precision):
    assert resolve_precision(precision, CPU) == precision


@pytest.mark.parametrize(
    ("name", "current", "index"),
    [("auto", None, 0), ("cuda", None, 0), ("cuda", 3, 3), ("auto", 2, 2), ("cuda:1", 3, 1), ("cuda:1", None, 1)],
)
def test_a_gpu_has_an_index_and_multiplies_in_tf32(monkeypatch, name, current, index):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: current is not None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current)
    precision = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", precision.append)
    assert resolve_device(name) == torch.device("cuda", index)
    assert resolve_device(name).index == index
    assert set(precision) == {"high"}


@pytest.mark.skipif(sys.platform != "linux", reason="the system's figures")
def test_what_an_earlier_training_has_freed_does_not_count():
    pieces = [bytearray(20_000) for _ in range(20_000)]  # too small to be mapped one by one
    held = peak_memory(CPU)
    last = pieces[-1]
    del pieces
    reset_peak_memory(CPU)
    assert peak_memory(CPU) < held - 300_000_000
    assert len(last) == 20_000


STEPS = """
import resource, sys
import torch
from bakeoff.resources.device import resolve_device

device = resolve_device("cpu") if sys.argv[1] == "resolved" else "cpu"
for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in (5_000_000, 20_000_000):  # 20 MB and 80 MB, together 24,000 pages
        torch.ones(size, device=device).add_(1)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults)
"""


@pytest.mark.skipif(not platform.libc_ver()[0], reason="glibc's malloc")
@pytest.mark.slow
def test_tensors_that_every_step_takes_and_frees_are_not_asked_of_the_system_again():
    def pages(how):
        """Pages that the system hands out in the last of some steps, in a process of its own."""
        return int(subprocess.run([sys.executable, "-c", STEPS, how], check=True, capture_output=True).stdout)

    assert pages("resolved") < 1000 < 10_000 < pages("as it is")
