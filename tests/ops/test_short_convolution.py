from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.naive import short_convolution_naive

from bakeoff.ops.cpu import short_convolution as kernels
from bakeoff.ops.short_convolution import short_convolution


def outputs_and_gradients(function, x, weight, **options):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    y = function(x, weight, **options)
    (y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).cos()).sum().backward()
    return y.detach(), x.grad, weight.grad


def assert_all_close(found, expected, tolerance=1e-12):
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


@st.composite
def problems(draw):
    batch, length, heads, channels = (draw(st.integers(1, most)) for most in (2, 5, 3, 2))
    kernel, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    x = torch.randn(batch, length, heads * channels, dtype=torch.float64)
    each = (batch, length) if draw(st.booleans()) else ()
    weight = torch.randn(*each, heads, kernel, dtype=torch.float64)
    owners = st.lists(st.lists(st.integers(0, 2), min_size=length, max_size=length), min_size=batch, max_size=batch)
    documents = torch.tensor(draw(owners)) if draw(st.booleans()) else None
    return x, weight, {"causal": draw(st.booleans()), "dilation": dilation, "documents": documents}


@pytest.mark.parametrize("compiling", [False, True], ids=["eager", "as compiled"])
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(problem=problems(), tokens=st.integers(1, 12))
def test_equals_its_definition(compiling, problem, tokens):
    """Whatever the sizes of the pieces that it works on."""
    x, weight, options = problem
    expected = outputs_and_gradients(short_convolution_naive, x, weight, **options)
    with (
        patch("torch.compiler.is_compiling", return_value=compiling),
        patch.object(kernels, "PIECE_BYTES", tokens * x.shape[-1] * x.element_size()),
        patch.object(kernels, "PIECE_LENGTH", tokens),
    ):
        assert_all_close(outputs_and_gradients(short_convolution, x, weight, **options), expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dilation", [1, 2])
def test_what_stands_before_is_seen(dynamic, dilation):
    torch.manual_seed(0)
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    weight = torch.randn(*((2, 9) if dynamic else ()), 3, 3, dtype=torch.float64)
    whole = short_convolution(x, weight, causal=True, dilation=dilation)
    first, rest = x[:, : 2 * dilation], x[:, 2 * dilation :]
    for compiling in (False, True):
        with patch("torch.compiler.is_compiling", return_value=compiling):
            later = weight[:, 2 * dilation :] if dynamic else weight
            found = short_convolution(rest, later, causal=True, dilation=dilation, left=first)
        torch.testing.assert_close(found, whole[:, 2 * dilation :], atol=1e-12, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler does so with autograd functions
def test_compiled_equals_eager(dynamic, packed):
    torch.manual_seed(0)
    x = torch.randn(2, 40, 64)
    weight = torch.randn(*((2, 40) if dynamic else ()), 4, 31).softmax(-1)
    documents = torch.arange(40).div(13, rounding_mode="floor").expand(2, -1) if packed else None
    options = {"causal": True, "documents": documents}
    found = outputs_and_gradients(torch.compile(short_convolution), x, weight, **options)
    assert_all_close(found, outputs_and_gradients(short_convolution, x, weight, **options), 1e-4)


def test_heads_cover_contiguous_channels():
    x = torch.ones(1, 1, 4)
    weight = torch.tensor([[2.0], [3.0]])
    assert short_convolution(x, weight, causal=True).flatten().tolist() == [2.0, 2.0, 3.0, 3.0]


@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 12),
    heads=st.sampled_from([1, 2, 6]),
    taps=st.integers(2, 9),
    dilation=st.integers(1, 2),
    width=st.sampled_from([6, 48, 90]),
    causal=st.booleans(),
    documents=st.booleans(),
    piece=st.sampled_from([4, 128]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=15, deadline=None)
def test_in_bfloat16_values_and_gradients_are_those_of_float64(
    way, batch, length, heads, taps, dilation, width, causal, documents, piece, seed
):
    torch.manual_seed(seed)
    x = torch.randn(batch, length, width).bfloat16().requires_grad_()
    weight = torch.randn(heads, taps).bfloat16().requires_grad_()
    upstream = torch.randn(batch, length, width).bfloat16()
    owners = torch.randint(2, (batch, length)).sort().values if documents else None
    with patch.object(kernels, "PIECE_LENGTH", piece):
        found = short_convolution(x, weight, causal=causal, dilation=dilation, documents=owners)
        gradients = torch.autograd.grad(found, (x, weight), upstream)
    exact = [each.detach().double() for each in (x, weight, upstream)]
    expected, wanted = _naive_with_gradients(exact, causal, dilation, owners)
    terms, of_gradients = _naive_with_gradients([each.abs() for each in exact], causal, dilation, owners)
    # Roundings are measured by the sizes of what is summed, since a sum may cancel.
    for one, other, sizes in zip((found, *gradients), (expected, *wanted), (terms, *of_gradients), strict=True):
        assert one.dtype == torch.bfloat16
        assert float((one.detach().double() - other).norm()) <= 2.0**-6 * float(sizes.norm())


def _naive_with_gradients(values, causal, dilation, owners):
    """The naive convolution and its gradients, from inputs, taps and upstream gradient."""
    x, weight = (each.requires_grad_() for each in values[:2])
    found = short_convolution_naive(x, weight, causal=causal, dilation=dilation, documents=owners)
    return found.detach(), torch.autograd.grad(found, (x, weight), values[2])
