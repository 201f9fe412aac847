import pytest
import torch
from torch import nn

from bakeoff.models.norms import RMSNorm


@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norm_of_states_of_either_precision_is_torchs_in_float64(gain, dtype, recwarn):
    torch.manual_seed(0)
    norm = RMSNorm(16, 1e-3, elementwise_affine=gain)
    exact = nn.RMSNorm(16, eps=1e-3, elementwise_affine=gain, dtype=torch.float64)
    if gain:
        nn.init.uniform_(norm.weight, 0.5, 2.0)
        exact.load_state_dict(norm.state_dict())
    x = torch.randn(3, 5, 16).mul(3).to(dtype).requires_grad_()
    exact_x = x.detach().double().requires_grad_()
    y, expected, upstream = norm(x), exact(exact_x), torch.randn(3, 5, 16).to(dtype)
    y.backward(upstream)
    expected.backward(upstream.double())
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    pairs = [(y, expected), (x.grad, exact_x.grad), *([(norm.weight.grad, exact.weight.grad)] if gain else [])]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.double(), theirs, atol=tolerance, rtol=tolerance)
    assert y.dtype == x.grad.dtype == dtype
    assert not recwarn.list
