"""Rotary positions against their definition (Su et al. 2021, equation 34)."""

import math

import pytest
import torch
from tests.ops.naive import rotate_naive

from bakeoff.ops.rotary import rotate


@pytest.mark.parametrize(("length", "width", "start"), [(1, 2, 0), (7, 6, 0), (5, 8, 11)])
def test_it_equals_its_naive_twin(length, width, start):
    x = torch.randn(2, 3, length, width, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(rotate(x, start), rotate_naive(x, start), atol=1e-5, rtol=1e-5)


def test_angles_are_those_of_the_paper():
    """Position t turns the i-th of d / 2 pairs by t / 10000^(2 i / d)."""
    first = torch.cat([torch.ones(1, 1, 9, 3), torch.zeros(1, 1, 9, 3)], dim=-1)  # every pair is (1, 0)
    for t, row in enumerate(rotate(first)[0, 0]):
        angles = [t / 10_000 ** (2 * i / 6) for i in range(3)]
        expected = [*map(math.cos, angles), *map(math.sin, angles)]
        assert row.tolist() == pytest.approx(expected, abs=1e-5)


def test_products_depend_on_the_distance_alone():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)
    products = [(rotate(query, place + 3) * rotate(key, place)).sum() for place in (0, 1, 40)]
    torch.testing.assert_close(products[1:], products[:1] * 2, atol=1e-4, rtol=1e-4)
    assert not torch.isclose(products[0], (query * key).sum(), atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_gradients_are_those_of_the_plain_formula_to_the_last_bit(dtype):
    torch.manual_seed(0)
    x = torch.randn(2, 9, 3, 8).to(dtype).transpose(1, 2).requires_grad_()
    upstream = torch.randn(2, 3, 9, 8).to(dtype)
    angles = torch.arange(4.0, 13.0)[:, None] * 10_000 ** (-torch.arange(0, 8, 2) / 8)
    cosine, sine = angles.cos().to(dtype), angles.sin().to(dtype)
    first, second = x.chunk(2, dim=-1)
    expected = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    found = rotate(x, 4)
    assert torch.equal(found, expected)
    gradients = [torch.autograd.grad(y, x, upstream)[0] for y in (found, expected)]
    assert torch.equal(*gradients)


def test_what_inference_has_made_first_can_be_trained_with():
    x = torch.randn(1, 1, 77, 10)  # of a shape that no other test has
    with torch.inference_mode():
        rotate(x, 3)
    x.requires_grad_()
    rotate(x, 3).sum().backward()
    assert x.grad is not None
