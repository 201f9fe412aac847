import math

import pytest
import torch
import torch.nn.functional as F

from bakeoff.ops import attention as attending
from bakeoff.ops.attention import FEW_QUERIES, UNFUSED_KEYS, attention
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.ops.dropout import dropout


def tensors(dtype, queries=6, keys=6):
    torch.manual_seed(0)
    shapes = [(2, 3, queries, 4), (2, 3, keys, 4), (2, 3, keys, 4)]
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def definition(query, key, value, mask, causal, weights_mask):
    """Loops over queries and keys, in float64."""
    query, key, value = query.double(), key.double(), value.double()
    rows = []
    for t in range(query.shape[2]):
        scores = (query[:, :, t, None] * key).sum(-1) / math.sqrt(query.shape[-1])  # (B, H, S)
        seen = torch.ones_like(scores, dtype=torch.bool)
        if causal:
            seen[..., t + 1 :] = False
        if mask is not None:
            seen &= mask.expand(*scores.shape[:2], query.shape[2], -1)[:, :, t]
        odds = torch.where(seen, scores.exp(), 0.0)
        weights = odds / odds.sum(-1, keepdim=True) * weights_mask[:, :, t]
        rows.append((weights[..., None] * value).sum(2))
    return torch.stack(rows, 2)


@pytest.mark.parametrize("by_onednn", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("visible", ["all", "causal", "padding", "packed"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 4e-2)])
def test_equals_its_definition(monkeypatch, dtype, tolerance, visible, rate, by_onednn):
    monkeypatch.setattr(Float32Products, "by_onednn", by_onednn)
    query, key, value = tensors(dtype)
    mask = None
    if visible == "padding":
        mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6], dtype=torch.bool)[:, None, None]
    if visible == "packed":
        documents = torch.tensor([[1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 2, 2]])
        mask = (documents[:, None, :, None] == documents[:, None, None]).tril()
    torch.manual_seed(1)
    y = attention(query, key, value, mask=mask, causal=visible == "causal", dropout=rate)
    torch.manual_seed(1)
    weights_mask = dropout(torch.ones(2, 3, 6, 6, dtype=dtype), rate, rate > 0).double()
    expected = definition(query, key, value, mask, visible == "causal", weights_mask)
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (query, key, value), upstream)
    wanted = torch.autograd.grad(expected, (query, key, value), upstream.double())
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2 * tolerance, rtol=2 * tolerance)


@pytest.mark.parametrize("queries", [3, FEW_QUERIES, FEW_QUERIES + 1])
@pytest.mark.parametrize("keys", [UNFUSED_KEYS, UNFUSED_KEYS + 1])
def test_short_and_long_rows_in_bfloat16(keys, queries):
    query, key, value = tensors(torch.bfloat16, queries=queries, keys=keys)
    expected = F.scaled_dot_product_attention(query.double(), key.double(), value.double())
    torch.testing.assert_close(attention(query, key, value).double(), expected, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (6, 6)])
def test_matrix_units_change_nothing_but_the_kernel_where_nothing_is_trained(monkeypatch, units, queries, keys):
    monkeypatch.setattr(attending, "_has_matrix_units", lambda: units)
    kernels = []
    fused = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *x, **y: kernels.append(1) or fused(*x, **y))
    query, key, value = (each.detach() for each in tensors(torch.bfloat16, queries, keys))
    mask = torch.ones(2, 1, 1, keys, dtype=torch.bool)
    mask[0, :, :, :2] = False
    with torch.inference_mode():
        found = attention(query, key, value, mask=mask)
    expected = definition(query, key, value, mask, False, torch.ones(2, 3, queries, keys))
    torch.testing.assert_close(found.double(), expected, atol=4e-2, rtol=4e-2)
    assert len(kernels) == units
    with torch.no_grad():  # a validation in training
        attention(query, key, value, mask=mask)
    assert len(kernels) == units
