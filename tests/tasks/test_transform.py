"""The linear layer, activation and norm before the last layer of a head, by their definition."""

import pytest
import torch

from bakeoff.objectives.heads import HeadTransform
from bakeoff.tasks.heads.transform import Transform


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_norm_of_the_activation_of_a_map_with_the_settings_of_the_head(affine, bias):
    settings = HeadTransform("relu", 0.3, norm_affine=affine, norm_bias=bias, map_bias=bias)
    made = Transform(5, 7, settings).double()
    for parameter in made.parameters():
        parameter.data.normal_(generator=torch.Generator().manual_seed(parameter.dim()))
    assert (made.map.bias is not None) == bias
    assert (made.norm.weight is not None) == affine
    assert (made.norm.bias is not None) == (affine and bias)
    x = torch.randn(4, 5, dtype=torch.float64)
    y = (x @ made.map.weight.T + (made.map.bias if bias else 0)).clamp(min=0)
    y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, correction=0, keepdim=True) + 0.3).sqrt()
    y = y * (made.norm.weight if affine else 1) + (made.norm.bias if affine and bias else 0)
    torch.testing.assert_close(made(x), y)
