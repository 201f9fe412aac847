"""Products of a transposed matrix by the kernel are those of float64, with the sums of its columns."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.cpu import compiled_kernels
from bakeoff.ops.cpu import linear as on_cpu
from bakeoff.ops.cpu.transposed_product import multiplies_transposed, transposed_product
from bakeoff.ops.linear import linear
from bakeoff.resources.threads import using_threads

needs_kernel = pytest.mark.skipif(
    not multiplies_transposed(torch.zeros(1, 32, dtype=torch.bfloat16), 32),
    reason="there is no kernel for this processor, or no compiler",
)


@needs_kernel
@given(
    rows=st.one_of(st.integers(1, 70), st.sampled_from([511, 512, 513, 1100])),
    height=st.sampled_from([32, 64, 96, 288]),
    width=st.sampled_from([32, 96, 256, 320]),
    turned=st.booleans(),
    factor=st.sampled_from([1.0, 0.37]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=30, deadline=None)
def test_product_and_sums_are_those_of_float64(rows, height, width, turned, factor, seed):
    torch.manual_seed(seed)
    one, other = torch.randn(rows, height).bfloat16(), torch.randn(rows, width).bfloat16()
    if turned:  # not contiguous
        one = one.t().contiguous().t()
    product, sums = transposed_product(one, other, factor)
    assert product.dtype == sums.dtype == torch.float32
    expected = factor * (one.double().t() @ other.double())
    assert (product - expected).norm() < 1e-5 * expected.norm()
    assert (sums - factor * one.double().sum(0)).norm() < 1e-5 * rows**0.5 * height**0.5


@needs_kernel
def test_results_do_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(compiled_kernels, "LEAST_NUMBERS", 1)
    torch.manual_seed(0)
    one, other = torch.randn(1300, 64).bfloat16(), torch.randn(1300, 1056).bfloat16()
    results = []
    for threads in (1, 2, 3):
        with using_threads(threads):
            results.append((*transposed_product(one, other), *transposed_product(other, one)))
    for found in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], found, strict=True))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("by_kernel", [False, pytest.param(True, marks=needs_kernel)])
def test_linear_layers_have_its_gradients(by_kernel, bias, monkeypatch):
    if not by_kernel:
        monkeypatch.setattr(on_cpu, "multiplies_transposed", lambda one, columns: False)
    torch.manual_seed(0)
    x = torch.randn(3, 50, 64).bfloat16().requires_grad_()
    weight, added = torch.randn(96, 64).requires_grad_(), torch.randn(96).requires_grad_()
    leaves = (x, weight, added) if bias else (x, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = linear(x, weight, added if bias else None)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = torch.nn.functional.linear(*exact)
    upstream = torch.randn(3, 50, 96).bfloat16()
    found = torch.autograd.grad(y, leaves, upstream)
    for one, other, leaf in zip(found, torch.autograd.grad(expected, exact, upstream.double()), leaves, strict=True):
        assert (one.dtype, one.shape) == (leaf.dtype, leaf.shape)
        precision = 1e-5 if by_kernel and leaf is not x else 1e-2
        assert (one - other).norm() < precision * other.norm()


@pytest.mark.parametrize(
    "one", [torch.zeros(2, 33).bfloat16(), torch.zeros(2, 32), torch.zeros(0, 32).bfloat16()], ids=["odd", "float", "0"]
)
def test_others_are_torchs(one):
    assert not multiplies_transposed(one, 32)
