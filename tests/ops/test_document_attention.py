"""torch's kernel for sequences of any lengths is called rightly by each signature that it has had."""

import inspect
from contextlib import nullcontext

import pytest
import torch
from tests.ops.naive import varlen_attn_naive
from torch.nn.attention.varlen import varlen_attn

from bakeoff.ops import document_attention as ops
from bakeoff.ops import varlen_kernels
from bakeoff.ops.attention import attention
from bakeoff.spans import bounds_of_source

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
    found = varlen_kernels.adapted(attend)
    monkeypatch.setattr(varlen_kernels, "_KERNELS", {False: found})
    if window is not None and not found.windows:
        assert "no windows" in ops.why_not(torch.device("meta"), torch.bfloat16, demands(windows=True))
        return
    query, key, value = drawn()
    mixed = ops.document_attention(query, key, value, BOUNDS, causal=causal, window=window, scale=scale)
    documents = documents_of(BOUNDS, 2, 7)
    distance = torch.arange(7) - torch.arange(7)[:, None]
    mask = (documents[:, :, None] == documents[:, None]) & (distance.abs() <= (7 if window is None else window))
    mask = (mask & (distance <= 0) if causal else mask)[:, None]
    torch.testing.assert_close(mixed, attention(query, key, value, mask=mask, scale=scale))


@pytest.mark.parametrize("attend", [varlen_attn_naive, of_2_10])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_every_signature_attends_to_the_tokens_of_sources(monkeypatch, attend, scale):
    """Of other lengths than the rows; padding may stand before and after, and a source may be padding alone."""
    monkeypatch.setattr(varlen_kernels, "_KERNELS", {False: varlen_kernels.adapted(attend)})
    generator = torch.Generator().manual_seed(1)
    query, key, value = (
        torch.randn(4, 3, length, 8, generator=generator, dtype=torch.float64, requires_grad=True)
        for length in (5, 7, 7)
    )
    there = torch.tensor([[1] * 7, [1] * 4 + [0] * 3, [0] * 2 + [1] * 3 + [0] * 2, [0] * 7], dtype=torch.bool)
    mixed = ops.source_attention(query, key, value, bounds_of_source(there, 5), scale=scale)
    seen = there | ~there.any(1, keepdim=True)
    plain = attention(query, key, value, mask=seen[:, None, None], scale=scale)
    torch.testing.assert_close(mixed, plain)
    upstream = torch.randn(mixed.shape, generator=generator, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad(mixed, (query, key, value), upstream),
        torch.autograd.grad(plain, (query, key, value), upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def demands(windows=False, dropout=False, width=8):
    return ops.Demands(windows, dropout, width)


@pytest.mark.parametrize("dropout", [False, True])
def test_this_torchs_signatures_are_known(dropout):
    assert varlen_kernels.kernel(dropout) is not None, inspect.signature(varlen_attn)


def test_the_operation_below_is_called_as_varlen_attn_calls_it(monkeypatch):
    """On meta tensors, forwards and backwards: causal is a window of (-1, 0), as in torch's `varlen_attn`."""
    calls = []
    operation = torch.ops.aten._flash_attention_forward.default

    class Noted:
        _schema = operation._schema

        def __call__(self, *arguments, **options):
            calls.append((arguments[7:], options))
            return operation(*arguments, **options)

    monkeypatch.setattr(varlen_kernels, "_KERNELS", {True: varlen_kernels.adapted_with_dropout(Noted())})
    leaves = [torch.empty(2, 3, 7, 8, dtype=torch.bfloat16, device="meta", requires_grad=True) for _ in range(3)]
    bounds = BOUNDS.to("meta")
    for causal, window, sides in (
        (True, None, (-1, 0)),
        (True, 4, (4, 0)),
        (False, 4, (4, 4)),
        (False, None, (-1, -1)),
    ):
        mixed = ops.document_attention(*leaves, bounds, causal=causal, window=window, dropout=0.1)
        assert mixed.shape == (2, 3, 7, 8)
        assert [each.shape for each in torch.autograd.grad(mixed.sum(), leaves)] == [(2, 3, 7, 8)] * 3
        rest, options = calls[-1]
        assert rest == (0.1, sides == (-1, 0), False)
        assert (options["window_size_left"], options["window_size_right"]) == sides


def test_an_unknown_signature_is_not_called():
    assert varlen_kernels.adapted(lambda query, key, value, sequences: query) is None
    assert varlen_kernels.adapted_with_dropout(torch.ops.aten.relu.default) is None


@pytest.mark.parametrize(
    ("device", "products", "capability", "reason"),
    [
        ("cuda", torch.bfloat16, (9, 0), None),
        ("cuda", torch.bfloat16, (8, 0), None),
        ("cuda", torch.bfloat16, (7, 5), "no FlashAttention"),
        ("cuda", torch.float32, (9, 0), "bfloat16"),
        ("cuda", torch.float16, (9, 0), "bfloat16"),
        ("cpu", torch.bfloat16, (9, 0), "GPUs of CUDA"),
        ("mps", torch.bfloat16, (9, 0), "GPUs of CUDA"),
    ],
)
def test_it_runs_in_bfloat16_on_gpus_since_ampere(monkeypatch, device, products, capability, reason):
    ops._failure.cache_clear()
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.random, "fork_rng", lambda _: nullcontext())
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(ops, "trial", lambda *_: None)
    found = ops.why_not(torch.device(device), products, demands(windows=True))
    assert found is None if reason is None else reason in found
    ops._failure.cache_clear()


def dropping(query, key, value, within):
    mixed, dropout = without_dropout(query, key, value, within), within.dropout
    return mixed * (torch.rand_like(mixed) >= dropout) / (1 - dropout) if dropout else mixed


def without_dropout(query, key, value, within):
    where = (*within.bounds, *within.longest)
    return varlen_attn_naive(query, key, value, *where, scale=within.scale, window_size=within.sides)


def without_windows(query, key, value, within):
    return without_dropout(query, key, value, within._replace(sides=(-1, min(within.sides[1], 0))))


def wrong_gradient(query, key, value, *rest):
    return dropping(query, key.detach() + 0 * key, value, *rest)


def infinite(query, key, value, within):
    return without_dropout(query, key, value, within) / (within.dropout == 0.0)


def broken(*arguments):
    raise RuntimeError("no kernel image is available\nfor this device")


def blind_to_padding(query, key, value, within):
    """A kernel that takes the bounds of the queries for those of the keys."""
    return without_dropout(query, key, value, within._replace(bounds=(within.bounds[0],) * 2))


@pytest.mark.parametrize(
    ("attend", "dropout", "reason"),
    [
        (dropping, True, None),
        (dropping, False, None),
        (blind_to_padding, False, "differs from attention with masks"),
        (wrong_gradient, False, "differs from attention with masks"),
        (infinite, True, "not finite"),
    ],
)
def test_so_is_one_that_attends_to_sources(tried, attend, dropout, reason):
    found = tried(attend, ops.Demands(False, dropout, 16, source=True))
    assert found is None if reason is None else reason in found


@pytest.fixture
def tried(monkeypatch):
    """What a trial on this CPU says of a kernel."""
    ops._failure.cache_clear()
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))

    def tries(attend, demanded):
        monkeypatch.setattr(varlen_kernels, "_KERNELS", {demanded.dropout: varlen_kernels.Kernel(attend, windows=True)})
        with torch.inference_mode():
            return ops._failure(torch.device("cpu"), demanded)

    yield tries
    ops._failure.cache_clear()


@pytest.mark.parametrize(
    ("attend", "windows", "dropout", "reason"),
    [
        (dropping, True, True, None),
        (dropping, False, False, None),
        (without_windows, True, False, "differs from attention with masks"),
        (without_windows, False, False, None),
        (wrong_gradient, False, False, "differs from attention with masks"),
        (infinite, False, True, "not finite"),
        (infinite, False, False, None),
        (broken, False, False, "failed here (no kernel image is available)"),
    ],
)
def test_a_kernel_is_tried_once_against_masks(tried, attend, windows, dropout, reason):
    """Here on a CPU, with kernels that are right or wrong in one way; the random numbers of a training stay."""
    before = torch.random.get_rng_state()
    found = tried(attend, demands(windows, dropout, 16))
    assert found is None if reason is None else reason in found
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_pass_multiplies_in_the_type_of_autocast_or_of_the_weights():
    cpu = torch.device("cpu")
    assert ops.products_on(cpu, torch.float32) == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.products_on(cpu, torch.float32) == torch.bfloat16
    assert ops.products_on(torch.device("meta"), torch.bfloat16) == torch.bfloat16
