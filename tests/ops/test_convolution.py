import pytest
import torch
import torch.nn.functional as F
from tests.ops.naive import convolution_naive

from bakeoff.ops.convolution import convolution


def outputs_and_gradients(function, x, weight, bias, **options):
    inputs = [each.clone().requires_grad_() for each in (x, weight, bias)]
    y = function(*inputs, **options)
    (y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).cos()).sum().backward()
    return [y.detach(), *(each.grad for each in inputs)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (4, 1), (7, 1), (3, 2)])
@pytest.mark.parametrize("packed", [False, True])
def test_equals_its_definition(causal, kernel, dilation, packed):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    weight = torch.randn(6, kernel, 4, dtype=torch.float64)
    bias = torch.randn(6, dtype=torch.float64)
    documents = torch.tensor([[1, 1, 2, 2, 0], [1, 2, 3, 3, 3]]) if packed else None
    options = {"causal": causal, "dilation": dilation, "documents": documents}
    found = outputs_and_gradients(convolution, x, weight, bias, **options)
    expected = outputs_and_gradients(convolution_naive, x, weight, bias, **options)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_equals_torchs_convolution():
    torch.manual_seed(0)
    x, weight = torch.randn(2, 9, 4), torch.randn(6, 3, 4)
    expected = F.conv1d(F.pad(x.transpose(1, 2), (4, 0)), weight.transpose(1, 2), dilation=2).transpose(1, 2)
    torch.testing.assert_close(convolution(x, weight, causal=True, dilation=2), expected)


def test_what_stands_before_is_seen():
    torch.manual_seed(0)
    x, weight = torch.randn(2, 9, 4), torch.randn(6, 3, 4)
    whole = convolution(x, weight, causal=True, dilation=2)
    rest = convolution(x[:, 5:], weight, causal=True, dilation=2, left=x[:, 1:5])
    torch.testing.assert_close(rest, whole[:, 5:])
