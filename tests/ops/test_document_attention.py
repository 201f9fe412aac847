"""torch's kernel for sequences of any lengths is called rightly by each signature that it has had."""

import inspect

import pytest
import torch
from tests.ops.naive import varlen_attn_naive

from bakeoff.ops import document_attention as ops
from bakeoff.ops.attention import attention

BOUNDS = torch.tensor([0, 3, 3, 7, 14, 14], dtype=torch.int32)


def of_2_10(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, return_aux=None):
    return varlen_attn_naive(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, window_size=(-1, 0) if is_causal else (-1, -1)
    )


def drawn():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, 3, 7, 8, generator=generator, dtype=torch.float64) for _ in range(3)]


def documents_of(bounds, rows, length):
    """(B, T) the number of each position's sequence."""
    positions = torch.arange(rows * length)
    return torch.searchsorted(bounds.long(), positions, right=True).view(rows, length)


@pytest.mark.parametrize("attend", [varlen_attn_naive, of_2_10])
@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (False, 2), (True, 2)])
def test_every_signature_attends_within_documents(monkeypatch, attend, scale, causal, window):
    found = ops.adapted(attend)
    monkeypatch.setattr(ops, "_KERNEL", [found])
    if window is not None and not found.windows:
        assert not ops.runs_on(torch.device("meta"), torch.bfloat16, windows=True)
        return
    query, key, value = drawn()
    mixed = ops.document_attention(query, key, value, BOUNDS, causal=causal, window=window, scale=scale)
    documents = documents_of(BOUNDS, 2, 7)
    distance = torch.arange(7) - torch.arange(7)[:, None]
    mask = (documents[:, :, None] == documents[:, None]) & (distance.abs() <= (7 if window is None else window))
    mask = (mask & (distance <= 0) if causal else mask)[:, None]
    torch.testing.assert_close(mixed, attention(query, key, value, mask=mask, scale=scale))


def test_this_torchs_signature_is_known():
    from torch.nn.attention.varlen import varlen_attn

    assert ops.kernel() is not None, inspect.signature(varlen_attn)


def test_an_unknown_signature_is_not_called():
    assert ops.adapted(lambda query, key, value, sequences: query) is None


@pytest.mark.parametrize(
    ("device", "products", "capability", "runs"),
    [
        ("cuda", torch.bfloat16, (9, 0), True),
        ("cuda", torch.bfloat16, (8, 0), True),
        ("cuda", torch.bfloat16, (7, 5), False),
        ("cuda", torch.float32, (9, 0), False),
        ("cuda", torch.float16, (9, 0), False),
        ("cpu", torch.bfloat16, (9, 0), False),
        ("mps", torch.bfloat16, (9, 0), False),
    ],
)
def test_it_runs_in_bfloat16_on_gpus_since_ampere(monkeypatch, device, products, capability, runs):
    ops._has_flash.cache_clear()
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert ops.runs_on(torch.device(device), products, windows=True) == runs
    ops._has_flash.cache_clear()


def test_a_pass_multiplies_in_the_type_of_autocast_or_of_the_weights():
    cpu = torch.device("cpu")
    assert ops.products_on(cpu, torch.float32) == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.products_on(cpu, torch.float32) == torch.bfloat16
    assert ops.products_on(torch.device("meta"), torch.bfloat16) == torch.bfloat16
