"""A linear layer in bfloat16 on a CPU has the values and gradients of the products."""

import pytest
import torch
import torch.nn.functional as F

from bakeoff.ops.cpu import linear as on_cpu
from bakeoff.ops.linear import linear

SHAPES = [((512,), 24, 40), ((2, 256), 8, 16), ((3, 5), 7, 9), ((0,), 3, 2), ((2, 2, 128), 16, 8)]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
def test_values_and_gradients_are_those_of_the_product(rows, inputs, outputs, turned, monkeypatch):
    monkeypatch.setattr(on_cpu, "LEAST_ROWS", 256)
    torch.manual_seed(0)
    x = torch.randn(*rows, inputs).bfloat16().requires_grad_()
    weight, bias = torch.randn(outputs, inputs).requires_grad_(), torch.randn(outputs).requires_grad_()
    upstream = torch.randn(outputs, *rows).movedim(0, -1) if turned else torch.randn(*rows, outputs)
    leaves = (x, weight, bias)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = linear(x, weight, bias)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = F.linear(*exact)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, rtol=2e-2, atol=5e-2)
    ours = torch.autograd.grad(found, leaves, upstream.bfloat16())
    theirs = torch.autograd.grad(expected, exact, upstream.bfloat16().double())
    for one, other, leaf in zip(ours, theirs, leaves, strict=True):
        assert (one.dtype, one.shape) == (leaf.dtype, leaf.shape)
        torch.testing.assert_close(one.double(), other, rtol=3e-2, atol=0.5 if rows[0] > 100 else 0.1)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 96), (7, 9)])
def test_a_residual_is_added_and_has_the_gradient_of_the_sum(inputs, outputs, dtype, biased):
    torch.manual_seed(0)
    x = torch.randn(3, 50, inputs).bfloat16().requires_grad_()
    beside = torch.randn(outputs, 3, 50).to(dtype).movedim(0, -1).requires_grad_()  # not contiguous
    weight, bias = (
        torch.randn(outputs, inputs).requires_grad_(),
        torch.randn(outputs).requires_grad_() if biased else None,
    )
    leaves = [x, weight, *([] if bias is None else [bias]), beside]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = linear(x, weight, bias, beside)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = F.linear(*exact[:-1]) + exact[-1]
    torch.testing.assert_close(found.double(), expected, rtol=2e-2, atol=0.1)
    upstream = torch.randn(found.shape).bfloat16()
    ours = torch.autograd.grad(found, leaves, upstream.to(found.dtype))
    for one, other, leaf in zip(ours, torch.autograd.grad(expected, exact, upstream.double()), leaves, strict=True):
        assert (one.dtype, one.shape) == (leaf.dtype, leaf.shape)
        torch.testing.assert_close(one.double(), other, rtol=3e-2, atol=0.2)


def test_only_what_is_asked_for_is_computed():
    x, weight, bias = torch.randn(4, 3).bfloat16(), torch.randn(2, 3).requires_grad_(), torch.zeros(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        linear(x, weight, bias).sum().backward()
    torch.testing.assert_close(weight.grad, x.float().sum(0).expand(2, 3), rtol=2e-2, atol=2e-2)


def test_elsewhere_it_is_torchs_to_the_last_bit():
    x, weight, bias = torch.randn(4, 3), torch.randn(2, 3, requires_grad=True), torch.randn(2)
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    beside = torch.randn(4, 2)
    assert torch.equal(linear(x, weight, bias, beside), beside + F.linear(x, weight, bias))
