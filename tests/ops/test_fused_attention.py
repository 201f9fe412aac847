"""Attention by one kernel in bfloat16 on a CPU is that of its definition in float64, with the gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.attention import FEW_QUERIES, attention
from bakeoff.ops.attention_heads import split_heads
from bakeoff.ops.cpu import attention as fused
from bakeoff.ops.cpu import compiled_kernels
from bakeoff.ops.head_norm import head_norm
from bakeoff.ops.projected_heads import ProjectedHeads
from bakeoff.ops.rotary import rotate
from bakeoff.ops.self_attention import self_attention_at_once
from bakeoff.resources.threads import using_threads

PROBE = torch.zeros(1, 1, FEW_QUERIES + 1, 32, dtype=torch.bfloat16)
needs_kernel = pytest.mark.skipif(
    not fused.attends_by_kernel(PROBE, PROBE, PROBE), reason="there is no kernel for this processor, or no compiler"
)
ROUNDING = 2.0**-6
"""Largest error of a few operations in bfloat16, relative to the norm of the result."""


def apart(one, other):
    """The error relative to the norm, or to that of hundredths where nothing larger should be there."""
    one, other = one.detach().double(), other.detach().double()
    return float((one - other).norm() / other.norm().clamp(min=0.01 * other.numel() ** 0.5))


def definition(query, key, value, seen, kept=None):
    """softmax(Q K^T / sqrt(d)) V of (B, H, T, S) `seen` keys, of which `kept` has the factors of dropout."""
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~seen, -math.inf).softmax(-1)
    return (weights if kept is None else weights * kept) @ value


def distances(queries, keys):
    """(T, S) of keys from the queries' own."""
    return torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]


def visible(kind, rows, queries, keys):
    """A mask, and the (B or 1, 1, T, S) keys that are seen, of which each query has one."""
    own = distances(queries, keys) == 0
    if kind == "causal":
        return None, (distances(queries, keys) <= 0)[None, None]
    if kind == "padding":
        mask = torch.arange(keys) < torch.randint(1, keys + 1, (rows, 1, 1, 1))
        return mask, mask.expand(-1, -1, queries, -1)
    if kind == "documents":
        documents = (torch.rand(rows, keys) < 0.1).cumsum(1)
        mask = (documents[:, None, -queries:, None] == documents[:, None, None]) | own
        return mask, mask
    seen = torch.ones(1, 1, queries, keys, dtype=torch.bool)
    return (seen[..., :1, :1] if kind == "one value" else None), seen


@needs_kernel
@given(
    rows=st.integers(1, 2),
    heads=st.integers(1, 3),
    queries=st.integers(FEW_QUERIES + 1, 150),
    more=st.integers(0, 70),
    width=st.sampled_from([8, 20, 33, 64, 80]),
    kind=st.sampled_from(["all", "causal", "padding", "documents", "one value"]),
    window=st.sampled_from([None, 3, 40]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
def test_values_and_gradients_are_those_of_the_definition(rows, heads, queries, more, width, kind, window, seed):
    torch.manual_seed(seed)
    keys = queries + more
    mask, seen = visible(kind, rows, queries, keys)
    shapes = [(rows, length, heads, width) for length in (queries, keys, keys)]
    leaves = [torch.randn(shape).bfloat16().requires_grad_() for shape in shapes]  # heads are strided views of these
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    upstream = torch.randn(rows, heads, queries, width).bfloat16()
    given_heads = [leaf.transpose(1, 2) for leaf in leaves]
    assert fused.attends_by_kernel(*given_heads)
    if window is None:
        y = attention(*given_heads, mask=mask, causal=kind == "causal")
    else:
        sight = fused.Sight(mask, window, 0 if kind == "causal" else window, own=True)
        y = fused.attend(*given_heads, sight, None, 0.0)
        apart_by = distances(queries, keys)
        seen = (seen & (apart_by.abs() <= window)) | (apart_by == 0)
    assert y.dtype == torch.bfloat16
    expected = definition(*(leaf.transpose(1, 2) for leaf in exact), seen)
    assert apart(y, expected) < ROUNDING
    found = torch.autograd.grad(y, leaves, upstream)
    for ours, theirs in zip(found, torch.autograd.grad(expected, exact, upstream.double()), strict=True):
        assert apart(ours, theirs) < ROUNDING


@needs_kernel
@given(
    rows=st.integers(1, 3),
    heads=st.integers(1, 3),
    length=st.integers(FEW_QUERIES + 1, 100),
    width=st.sampled_from([8, 32, 50, 64]),
    normed=st.booleans(),
    base=st.sampled_from([None, 100.0, 1e4]),
    start=st.integers(0, 50),
    causal=st.booleans(),
    window=st.sampled_from([None, 7]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
def test_of_a_projection_at_once(rows, heads, length, width, normed, base, start, causal, window, seed):
    torch.manual_seed(seed)
    projected = torch.randn(rows, length, 3 * heads * width).bfloat16().requires_grad_()
    gains = tuple((0.5 + torch.rand(2, width)).unbind()) if normed else ()
    leaves = [projected, *(gain.requires_grad_() for gain in gains)]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    upstream = torch.randn(rows, length, heads * width).bfloat16()
    treated = ProjectedHeads(heads, (width,) * 3, gains or None, 1e-3, start, base)
    y = self_attention_at_once(projected, treated, causal=causal, window=window)
    query, key, value = split_heads(exact[0], heads, (width,) * 3)
    if normed:
        query, key = head_norm(query, exact[1], 1e-3), head_norm(key, exact[2], 1e-3)
    if base is not None:
        query, key = rotate(query, start, base), rotate(key, start, base)
    apart_by = distances(length, length)
    seen = (apart_by <= (0 if causal else length)) & (apart_by.abs() <= (window or length))
    expected = definition(query, key, value, seen).transpose(1, 2).flatten(-2)
    assert apart(y, expected) < ROUNDING
    found = torch.autograd.grad(y, leaves, upstream)
    for ours, theirs in zip(found, torch.autograd.grad(expected, exact, upstream.double()), strict=True):
        assert ours.dtype == (torch.bfloat16 if ours.shape == projected.shape else torch.float32)
        assert apart(ours, theirs) < 2 * ROUNDING


def dropped(rate, rows=1, heads=2, length=64, spread=1.0):
    """(B, H, T, T) weights after dropout, with the leaves that gave them: values are rows of the unit matrix."""
    query, key = ((spread * torch.randn(rows, heads, length, length)).bfloat16().requires_grad_() for _ in range(2))
    value = torch.eye(length).bfloat16().expand(rows, heads, -1, -1).clone().requires_grad_()
    return attention(query, key, value, dropout=rate), (query, key, value)


@needs_kernel
def test_both_passes_drop_the_same_weights():
    torch.manual_seed(0)
    mixed, _ = dropped(0.3, spread=0.1)
    torch.manual_seed(0)
    again, leaves = dropped(0.3, spread=0.1)
    assert torch.equal(mixed, again)  # torch's state decides
    kept = (mixed != 0) / 0.7
    upstream = torch.randn_like(again)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = definition(*exact, torch.ones(64, 64, dtype=torch.bool), kept)
    assert apart(again, expected) < ROUNDING
    found = torch.autograd.grad(again, leaves, upstream)
    for ours, theirs in zip(found, torch.autograd.grad(expected, exact, upstream.double()), strict=True):
        assert apart(ours, theirs) < ROUNDING


@needs_kernel
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_weights_are_dropped_at_the_rate_and_independently(rate):
    torch.manual_seed(1)
    zero = torch.stack([dropped(rate, 3, 4, spread=0.1)[0] == 0 for _ in range(3)]).double()  # (calls, B, H, T, S)
    deviations = (zero - rate) / math.sqrt(rate * (1 - rate))
    assert abs(deviations.mean()) * math.sqrt(zero.numel()) < 5
    for dim in range(5):
        for step in (1, 2):
            if deviations.shape[dim] > step:
                product = deviations * deviations.roll(step, dim)
                assert abs(product.mean()) * math.sqrt(product.numel()) < 5
    square = deviations.mean(-1).square().mean() * 64  # of the counts in a row, whose variance is binomial
    assert abs(square - 1) < 5 * math.sqrt(2 / (zero.numel() / 64))


@needs_kernel
def test_results_do_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(compiled_kernels, "LEAST_NUMBERS", 1)

    def result(threads):
        with using_threads(threads):
            torch.manual_seed(3)
            mixed, leaves = dropped(0.2, rows=3, heads=4)
            return mixed, *torch.autograd.grad(mixed.square().sum(), leaves)

    for one, other in zip(result(1), result(3), strict=True):
        assert torch.equal(one, other)


@needs_kernel
def test_a_query_without_any_key_is_no_number():
    torch.manual_seed(4)
    query, key, value = (torch.randn(1, 1, 40, 16).bfloat16() for _ in range(3))
    mask = torch.ones(1, 1, 40, 40, dtype=torch.bool)
    mask[..., 5, :] = False
    mixed = attention(query, key, value, mask=mask)
    assert mixed[0, 0, 5].isnan().all()
    assert mixed.isnan().sum() == 16


@needs_kernel
@pytest.mark.parametrize("size", [1e2, 1e5, 1e12])
@pytest.mark.parametrize("keys", [1, 40])
def test_large_scores_are_exact_and_their_gradients_finite(size, keys):
    torch.manual_seed(4)
    query, key, value = (
        (factor * torch.randn(1, 1, length, 16)).bfloat16().requires_grad_()
        for factor, length in ((size, 40), (size, keys), (1, keys))
    )
    mixed, seen = attention(query, key, value), torch.ones(1, 1, 40, keys, dtype=torch.bool)
    assert apart(mixed, definition(query.double(), key.double(), value.double(), seen)) < ROUNDING
    assert all(each.isfinite().all() for each in torch.autograd.grad(mixed.sum(), (query, key, value)))


def test_without_the_kernel_torch_attends(monkeypatch):
    torch.manual_seed(5)
    query, key, value = (torch.randn(2, 2, 20, 16).bfloat16() for _ in range(3))
    mask = torch.rand(2, 1, 20, 20) < 0.7
    results = [attention(query, key, value, mask=mask | torch.eye(20, dtype=torch.bool))]
    monkeypatch.setattr(fused, "multiplies_matrices", lambda x: False)
    assert self_attention_at_once(torch.zeros(1, 20, 48, dtype=torch.bfloat16), ProjectedHeads(1, (16, 16, 16))) is None
    results.append(attention(query, key, value, mask=mask | torch.eye(20, dtype=torch.bool)))
    assert apart(*results) < 2 * ROUNDING


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_tensors_go_to_torch(device, dtype):
    query = torch.zeros(1, 1, 20, 16, device=device, dtype=dtype)
    if dtype == torch.float32 or device == "meta":
        assert not fused.attends_by_kernel(query, query, query)
    assert attention(query, query, query).shape == query.shape
