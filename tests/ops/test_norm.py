"""Norms with their residual connection and dropout: one pass of a kernel does what the single operations do."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bakeoff.models.norms import RMSNorm
from bakeoff.ops import norm as ops
from bakeoff.ops.cpu.compiled_kernels import kernels
from bakeoff.ops.dropout import dropout
from bakeoff.ops.norm import norm_alone, norm_beside, norm_of_sum, residual, rounded

needs_kernels = pytest.mark.skipif(kernels().library is None, reason=kernels().origin)
ROUNDING = 2.0**-6
"""Largest error of an operation in bfloat16, relative to the norm of the result."""


def apart(one, other):
    one, other = one.detach().double(), other.detach().double()
    return float((one - other).norm() / other.norm().clamp(min=1e-3))


def a_norm(kind, width):
    norm = {
        "layer": lambda: nn.LayerNorm(width, eps=1e-3),
        "layer without bias": lambda: nn.LayerNorm(width, eps=1e-3, bias=False),
        "bare": lambda: nn.LayerNorm(width, eps=1e-3, elementwise_affine=False),
        "rms": lambda: RMSNorm(width, eps=1e-3),
        "bare rms": lambda: RMSNorm(width, eps=1e-3, elementwise_affine=False),
    }[kind]()
    for parameter in norm.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    return norm


KINDS = st.sampled_from(["layer", "layer without bias", "bare", "rms", "bare rms"])


def compared(made, exact, leaves, exact_leaves):
    """The largest distance of values and gradients, which upstream gradients of the same numbers make."""
    generator = torch.Generator().manual_seed(7)
    upstream = [torch.randn(each.shape, generator=generator).bfloat16() for each in made]
    assert all(each.dtype == torch.bfloat16 for each in made)
    ours = [*made, *torch.autograd.grad(made, leaves, upstream)]
    theirs = [*exact, *torch.autograd.grad(exact, exact_leaves, [each.double() for each in upstream])]
    for one, leaf in zip(ours[len(made) :], leaves, strict=True):
        assert (one.dtype, one.shape) == (leaf.dtype, leaf.shape)
    return max(apart(one, other) for one, other in zip(ours, theirs, strict=True))


@needs_kernels
@given(
    kind=KINDS,
    shape=st.lists(st.integers(1, 5), max_size=2),
    rows=st.integers(1, 200),
    width=st.integers(2, 70),
    turned=st.booleans(),
    summed=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=80, deadline=None)
def test_values_and_gradients_are_those_of_the_single_operations(kind, shape, rows, width, turned, summed, seed):
    torch.manual_seed(seed)
    x = torch.randn(*shape, width, rows).transpose(-1, -2) if turned else torch.randn(*shape, rows, width)
    x = (3 * x + 1).bfloat16().requires_grad_()
    branch = torch.randn(x.shape).bfloat16().requires_grad_()
    norm = a_norm(kind, width)
    exact = a_norm(kind, width).double()
    exact.load_state_dict(norm.state_dict())
    leaves = [x, *([branch] if summed else []), *norm.parameters()]
    exact_leaves = [*(leaf.detach().double().requires_grad_() for leaf in leaves[: 1 + summed]), *exact.parameters()]
    assert ops._takes(x, norm)
    if summed:
        made = [norm_of_sum(x, branch, 0.5, False, norm)]
        total = exact_leaves[0] + exact_leaves[1]
        wanted = [exact(total + ((x + branch).double() - total).detach())]  # of the sum as it is rounded
    else:
        made = list(norm_beside(x, norm))
        wanted = [exact_leaves[0] * 1, exact(exact_leaves[0])]
    assert compared(made, wanted, leaves, exact_leaves) < ROUNDING


@needs_kernels
@given(
    kind=KINDS, summed=st.booleans(), uses=st.sampled_from(["both", "function", "residual"]), seed=st.integers(0, 99)
)
@settings(max_examples=30, deadline=None)
def test_gradients_of_both_ways_after_a_norm_are_summed(kind, summed, uses, seed):
    torch.manual_seed(seed)
    x, branch = (torch.randn(3, 41, 40).bfloat16().requires_grad_() for _ in range(2))
    norm, exact = a_norm(kind, 40), a_norm(kind, 40).double()
    exact.load_state_dict(norm.state_dict())
    y = norm_of_sum(x, branch, 0.5, False, norm) if summed else norm_alone(x, norm)
    past = residual(y)
    assert past is not y
    assert torch.equal(past, y)
    leaves = [x, *([branch] if summed else []), *norm.parameters()]
    exact_leaves = [*(leaf.detach().double().requires_grad_() for leaf in leaves[: 1 + summed]), *exact.parameters()]
    total = sum(exact_leaves[: 1 + summed])
    rounding = ((x + branch).double() - total).detach() if summed else 0.0
    wanted = exact(total + rounding)
    ways = {"both": [0, 1], "function": [0], "residual": [1]}[uses]
    made, expected = [[y, past][way] for way in ways], [wanted * 1 for _ in ways]
    assert compared(made, expected, leaves, exact_leaves) < ROUNDING


def test_what_no_kernel_made_goes_past_a_function_as_it_is():
    x, norm = torch.randn(2, 8, requires_grad=True), nn.LayerNorm(8)
    y = norm_of_sum(x, x, 0.0, False, norm)
    assert residual(y) is y
    assert torch.equal(norm_alone(x, norm), norm(x))


@needs_kernels
def test_states_are_rounded_where_a_model_is_trained_in_bfloat16():
    x = torch.randn(2, 8)
    assert rounded(x) is x
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(rounded(x), x.bfloat16())
        with torch.no_grad():
            assert rounded(x) is x


@needs_kernels
@pytest.mark.parametrize("width", [24, 32, 75])
def test_the_branch_has_dropout_and_its_gradient_the_same_mask(width):
    torch.manual_seed(0)
    norm = nn.LayerNorm(width, elementwise_affine=False)
    x, branch = torch.zeros(400, width).bfloat16(), torch.ones(400, width).bfloat16().requires_grad_()
    y = norm_of_sum(x, branch, 0.3, True, norm)
    kept = y > 0
    assert float(kept.double().mean()) == pytest.approx(0.7, abs=5 * (0.21 / kept.numel()) ** 0.5 + 1e-4)
    (gradient,) = torch.autograd.grad(y, branch, torch.randn(y.shape).bfloat16())
    assert torch.equal(gradient == 0, ~kept)
    assert len({tuple(row.tolist()) for row in kept}) == len(kept)
    scaled = branch.detach().double() * kept / 0.7
    torch.testing.assert_close(y.detach().double(), norm.double()(scaled), atol=3e-2, rtol=3e-2)


def test_in_float32_it_is_the_single_operations_to_the_last_bit():
    torch.manual_seed(0)
    x, branch, norm = torch.randn(3, 4, 8), torch.randn(3, 4, 8), nn.LayerNorm(8)
    torch.manual_seed(1)
    found = norm_of_sum(x, branch, 0.5, True, norm)
    torch.manual_seed(1)
    assert torch.equal(found, norm(x + dropout(branch, 0.5, True)))
    assert torch.equal(norm_beside(x, norm)[1], norm(x))
    assert norm_beside(x, norm)[0] is x


@needs_kernels
def test_rows_that_are_not_there_and_modules_with_listeners_are_torchs():
    norm = nn.LayerNorm(8)
    assert norm_beside(torch.empty(0, 8).bfloat16(), norm)[1].shape == (0, 8)
    x, heard = torch.randn(2, 8).bfloat16(), []
    norm.register_forward_hook(lambda *given: heard.append(1))
    norm_beside(x, norm)
    assert heard
    assert norm_beside(x, nn.Identity())[1] is x
    assert not ops._takes(x, nn.RMSNorm(8))  # whose epsilon depends on the type


@needs_kernels
def test_a_norm_that_nothing_uses_leaves_the_gradient_beside_it():
    x = torch.randn(5, 8).bfloat16().requires_grad_()
    beside, normed = norm_beside(x, nn.LayerNorm(8))
    assert torch.autograd.grad(beside.sum(), x, retain_graph=True)[0].tolist() == torch.ones(5, 8).tolist()
    assert float(torch.autograd.grad(normed.sum(), x)[0].abs().max()) < 1e-2


@needs_kernels
def test_a_state_that_is_no_number_stays_none():
    x = torch.ones(2, 40).bfloat16()
    x[0, 3] = float("nan")
    normed = norm_beside(x, nn.LayerNorm(40))[1]
    assert bool(normed[0].isnan().all())
    assert bool(normed[1].isfinite().all())
