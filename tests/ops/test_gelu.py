"""The Gaussian error linear unit in bfloat16 on a CPU: values and gradients of float64, rounded."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.gelu import gelu

EVERY = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
"""Every number of bfloat16."""


@pytest.mark.parametrize("by_tanh", [False, True])
def test_every_number_has_the_value_and_the_slope_of_float64(way, by_tanh):
    most = 64.0 if way == "by torch" else float("inf")  # torch's derivative of the largest ones is no number
    x = EVERY[EVERY.isfinite() & (EVERY.abs() <= most)].clone().requires_grad_()
    exact = x.detach().double().requires_grad_()
    y, expected = gelu(x, by_tanh), F.gelu(exact, approximate="tanh" if by_tanh else "none")
    torch.testing.assert_close(y.detach().double(), expected.detach(), rtol=2.0**-8, atol=1e-5)
    y.backward(torch.ones_like(y))
    expected.sum().backward()
    torch.testing.assert_close(x.grad.double(), exact.grad, rtol=2.0**-8, atol=1e-5)


@given(
    shape=st.lists(st.integers(0, 9), max_size=3),
    by_tanh=st.booleans(),
    gated=st.booleans(),
    turned=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_values_and_gradients_with_a_gate_are_those_of_the_single_operations(way, shape, by_tanh, gated, turned, seed):
    torch.manual_seed(seed)
    leaves = [(2 * torch.randn(shape)).bfloat16() for _ in range(1 + gated)]
    if turned:
        leaves = [leaf.mT if leaf.dim() > 1 else leaf for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    upstream = torch.randn(leaves[0].shape).bfloat16()
    found = gelu(leaves[0], by_tanh, leaves[1] if gated else None)
    expected = F.gelu(exact[0], approximate="tanh" if by_tanh else "none") * (exact[1] if gated else 1)
    assert found.dtype == torch.bfloat16
    ours = found, *torch.autograd.grad(found, leaves, upstream)
    theirs = expected, *torch.autograd.grad(expected, exact, upstream.double())
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one.detach().double(), other.detach(), rtol=2.0**-6, atol=1e-2)


def test_what_is_no_number_stays_none(way):
    assert gelu(torch.tensor([float("nan")]).bfloat16()).isnan().all()
    assert gelu(torch.tensor([float("inf")]).bfloat16()).isinf().all()


@pytest.mark.parametrize("by_tanh", [False, True])
def test_in_float32_it_is_torchs_to_the_last_bit(by_tanh):
    x, gate = torch.randn(2, 5, 7)
    expected = F.gelu(x, approximate="tanh" if by_tanh else "none")
    assert torch.equal(gelu(x, by_tanh), expected)
    assert torch.equal(gelu(x, by_tanh, gate), expected * gate)
