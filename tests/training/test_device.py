import sys

import pytest
import torch

from bakeoff.training.device import peak_memory, reset_peak_memory, resolve_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("has_tiles", "precision"), [(True, "bfloat16"), (False, "float32")])
def test_auto_precision_follows_the_processor(monkeypatch, has_tiles, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": has_tiles}, raising=False)
    assert resolve_precision("auto", CPU) == precision


def test_a_torch_that_does_not_list_capabilities_is_asked_otherwise(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert resolve_precision("auto", CPU) == "bfloat16"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_chosen_precision_is_kept(precision):
    assert resolve_precision(precision, CPU) == precision


@pytest.mark.skipif(sys.platform != "linux", reason="the system's figures")
def test_what_an_earlier_training_has_freed_does_not_count():
    pieces = [bytearray(20_000) for _ in range(20_000)]  # too small to be mapped one by one
    held = peak_memory(CPU)
    last = pieces[-1]
    del pieces
    reset_peak_memory(CPU)
    assert peak_memory(CPU) < held - 300_000_000
    assert len(last) == 20_000
