import pytest
import torch
import torch.nn.functional as F

from bakeoff.ops.head_norm import head_norm


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (4, 6), (1, 1, 1, 2)])
def test_norm_and_gradients_are_torchs(shape, dtype, tolerance):
    torch.manual_seed(0)
    x = torch.randn(shape).mul(3).to(dtype).transpose(0, -2).requires_grad_()  # not in one piece, as heads are
    gain = torch.rand(shape[-1], requires_grad=True)
    exact_x, exact_gain = (each.detach().double().requires_grad_() for each in (x, gain))
    y = head_norm(x, gain, 1e-3)
    expected = F.rms_norm(exact_x, gain.shape, exact_gain, 1e-3)
    assert y.dtype == gain.dtype
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    upstream = torch.randn(x.shape)
    found = torch.autograd.grad(y, (x, gain), upstream)
    wanted = torch.autograd.grad(expected, (exact_x, exact_gain), upstream.double())
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=tolerance, rtol=tolerance)


def test_in_float32_it_is_torchs_to_the_last_bit():
    torch.manual_seed(0)
    x, gain = torch.randn(2, 3, 40, 16), torch.rand(16)
    assert torch.equal(head_norm(x, gain, 1e-6), F.rms_norm(x, gain.shape, gain, 1e-6))
