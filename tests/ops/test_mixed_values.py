"""Values mixed where they lie in their projection: the equation in float64, and its gradients by torch's autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.mixed_values import given_values, mixed_values


def exact(projections, share, channels):
    """The projections of a first layer and of others, with v_l + a_l (v_1 - v_l) in the place of values, in float64."""
    first, *others = (each.detach().double().requires_grad_() for each in projections)
    a = share.detach().double().requires_grad_()
    v = first[..., -channels:]
    mixed = [torch.cat([p[..., :-channels], (1 - a) * p[..., -channels:] + a * v], dim=-1) for p in others]
    return [first, *others, a], [first * 1, *mixed]


@given(
    rows=st.integers(0, 3),
    length=st.integers(0, 9),
    channels=st.integers(1, 20),
    rest=st.integers(0, 40),
    layers=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.3, 0.5, 1.0, -1.7]),
    kind=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=80, deadline=None)
def test_values_and_gradients_are_those_of_the_equation(way, rows, length, channels, rest, layers, share, kind, seed):
    torch.manual_seed(seed)
    leaves = [torch.randn(rows, length, channels + rest).to(kind).requires_grad_() for _ in range(layers)]
    a = torch.tensor([share], dtype=torch.promote_types(kind, torch.float32), requires_grad=True)
    others, expected = exact(leaves, a, channels)
    first, values = given_values(leaves[0] * 1, channels)
    found = [first, *(mixed_values(leaf * 1, values, a) for leaf in leaves[1:])]
    upstream = [torch.randn(each.shape).to(kind) for each in found]
    wanted = [*leaves, a] if layers > 1 else leaves
    of_found = torch.autograd.grad(found, wanted, upstream)
    of_expected = torch.autograd.grad(expected, others[: len(wanted)], [each.double() for each in upstream])
    error = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.05}[kind]
    for one, other in zip([*found, *of_found[:layers]], [*expected, *of_expected[:layers]], strict=True):
        assert one.dtype == kind
        torch.testing.assert_close(one.detach().double(), other.detach(), atol=error, rtol=error)
    if layers > 1:
        assert of_found[-1].dtype == a.dtype
        numbers = max(1, rows * length * channels * layers) ** 0.5
        torch.testing.assert_close(of_found[-1].double(), of_expected[-1], atol=error * numbers, rtol=error)


@pytest.mark.parametrize("learns", [False, True])
def test_compiled_and_traced_it_is_the_same(learns):
    projected, other, a = torch.randn(2, 5, 12), torch.randn(2, 5, 12), torch.tensor([0.3])
    projected, other = (each.requires_grad_(learns) for each in (projected, other))

    def stacked(projected, other, a):
        first, values = given_values(projected * 1, 4)
        return first, mixed_values(other * 1, values, a)

    traced = torch.jit.trace(stacked, (projected, other, a), check_trace=False)
    program = torch.export.export(Called(stacked), (projected, other, a)).module()
    for way in (traced, program, torch.func.vmap(stacked, in_dims=(0, 0, None))):
        for one, two in zip(way(projected, other, a), stacked(projected, other, a), strict=True):
            torch.testing.assert_close(one, two)


class Called(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)
