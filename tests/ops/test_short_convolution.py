import pytest
import torch

from bakeoff.ops.short_convolution import short_convolution, short_convolution_naive


def outputs_and_gradients(function, x, weight, **options):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    y = function(x, weight, **options)
    (y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).cos()).sum().backward()
    return y.detach(), x.grad, weight.grad


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (4, 1), (7, 1), (3, 2)])
@pytest.mark.parametrize("packed", [False, True])
def test_equals_its_definition(dynamic, causal, kernel, dilation, packed):
    torch.manual_seed(0)
    batch, length, heads, width = 2, 5, 3, 6
    x = torch.randn(batch, length, width, dtype=torch.float64)
    shape = (batch, length, heads, kernel) if dynamic else (heads, kernel)
    weight = torch.randn(shape, dtype=torch.float64)
    documents = torch.tensor([[1, 1, 2, 2, 0], [1, 2, 3, 3, 3]]) if packed else None
    options = {"causal": causal, "dilation": dilation, "documents": documents}
    found = outputs_and_gradients(short_convolution, x, weight, **options)
    expected = outputs_and_gradients(short_convolution_naive, x, weight, **options)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_heads_cover_contiguous_channels():
    x = torch.ones(1, 1, 4)
    weight = torch.tensor([[2.0], [3.0]])
    assert short_convolution(x, weight, causal=True).flatten().tolist() == [2.0, 2.0, 3.0, 3.0]
