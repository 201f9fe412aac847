"""Heads cut, normed and turned in bfloat16 on a CPU are those of the single operations in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.attention_heads import attention_heads
from bakeoff.ops.projected_heads import ProjectedHeads

ROUNDING = 2.0**-5
"""Largest error of a few operations in bfloat16, relative to the norm of the result."""


def apart(one, other):
    one, other = one.detach().double(), other.detach()
    return float((one - other).norm() / other.norm().clamp(min=1e-9))


@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 9),
    heads=st.integers(1, 3),
    width=st.sampled_from([8, 10, 16, 64, 80]),
    normed=st.booleans(),
    base=st.sampled_from([None, 100.0, 1e4]),
    start=st.integers(0, 50),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_values_and_gradients_are_those_of_the_single_operations(
    way, batch, length, heads, width, normed, base, start, seed
):
    torch.manual_seed(seed)
    projected = torch.randn(batch, length, 3 * heads * width).bfloat16().requires_grad_()
    gains = (0.5 + torch.rand(2, width)).unbind() if normed else ()
    leaves = [projected, *(gain.requires_grad_() for gain in gains)]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    upstream = [torch.randn(batch, heads, length, width).bfloat16() for _ in range(3)]
    results = []
    for first, *others in (leaves, exact):
        made = attention_heads(first, ProjectedHeads(heads, (width,) * 3, tuple(others) or None, 1e-3, start, base))
        assert all(each.dtype == first.dtype for each in made)
        inputs = [first, *others]
        results.append([*made, *torch.autograd.grad(made, inputs, [each.to(first.dtype) for each in upstream])])
    for ours, theirs in zip(*results, strict=True):
        assert apart(ours, theirs) < ROUNDING


@pytest.mark.parametrize("widths", [(4, 4, 6), (8, 8, 8)])
def test_types_and_shapes_do_not_depend_on_the_widths(way, widths):
    projected = torch.randn(2, 5, 3 * sum(widths)).bfloat16()
    gains = torch.ones(widths[0]), torch.ones(widths[0])
    made = attention_heads(projected, ProjectedHeads(3, widths, gains, 1e-6, 0, 1e4))
    assert [each.shape for each in made] == [(2, 3, 5, width) for width in widths]
    assert {each.dtype for each in made} == {torch.bfloat16}


def test_one_part_alone_may_be_used(way):
    projected = torch.randn(2, 5, 24).bfloat16().requires_grad_()
    heads = ProjectedHeads(2, (4, 4, 4), (torch.ones(4), torch.ones(4)), 1e-6, 0, 1e4)
    _, _, value = attention_heads(projected, heads)
    value.sum().backward()
    assert torch.equal(projected.grad, torch.cat([torch.zeros(2, 5, 16), torch.ones(2, 5, 8)], dim=-1).bfloat16())
