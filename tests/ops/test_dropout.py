import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.cpu.dropout import STEPS, drawn_mask
from bakeoff.ops.dropout import dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_rate_and_the_mean_are_kept(rate, dtype):
    torch.manual_seed(0)
    elements = 1_000_003
    y = dropout(torch.ones(elements, dtype=dtype), rate, True).double()
    deviation = (rate * (1 - rate) / elements) ** 0.5
    assert float((y == 0).double().mean()) == pytest.approx(rate, abs=5 * deviation + 1e-5)
    assert float(y[y != 0][0]) == pytest.approx(1 / (1 - rate), rel=4e-3 if dtype == torch.bfloat16 else 1e-4)
    assert len(y.unique()) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_are_independent_of_their_neighbours(dtype):
    torch.manual_seed(0)
    zero = dropout(torch.ones(400_000, dtype=dtype), 0.3, True) == 0
    for distance in (1, 2, 3, 4, 16, 32, 64, 1024, 4096):  # some elements come from one number
        both = float((zero[:-distance] & zero[distance:]).float().mean())
        assert both == pytest.approx(0.09, abs=5 * (0.09 * 0.91 / 400_000) ** 0.5)


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), min_size=0, max_size=4),
    rate=st.integers(0, 999).map(lambda thousandths: thousandths / 1000),
)
def test_any_shape_and_rate(shape, rate):
    x = torch.ones(shape)
    y = dropout(x, rate, True)
    assert y.shape == x.shape
    assert bool(torch.isfinite(y).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_has_the_mask_of_the_output(dtype):
    x = torch.ones(3, 50, 7, dtype=dtype).transpose(0, 2).requires_grad_()
    y = dropout(x, 0.4, True)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_torchs_random_state_decides_the_masks(dtype):
    def draw():
        return dropout(torch.ones(1000, dtype=dtype), 0.5, True)

    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second = draw(), draw()
    torch.set_rng_state(state)
    assert torch.equal(draw(), first)
    assert torch.equal(draw(), second)
    assert not torch.equal(first, second)


def test_nothing_happens_outside_training():
    x = torch.ones(5)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x


@pytest.mark.slow
def test_compiled_has_a_mask_for_each_dropout_and_keeps_it_for_the_gradient():
    @torch.compile
    def layer(x):
        return dropout(x.exp(), 0.5, True) + 3 * dropout((x + 0).exp2(), 0.5, True)

    x = torch.zeros(4, 1000, requires_grad=True)
    y = layer(x)
    assert {round(value) for value in y.flatten().tolist()} == {0, 2, 6, 8}
    (gradient,) = torch.autograd.grad(y.sum(), x)
    first, second = ((y == 2) | (y == 8)).float(), (y >= 6).float()  # which of the two kept the element
    torch.testing.assert_close(gradient, 2 * first + 6 * math.log(2) * second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@given(elements=st.integers(0, 40), rate=st.floats(0.001, 0.999), seed=st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_a_mask_is_one_comparison_of_16_random_bits_for_each_element(dtype, elements, rate, seed):
    torch.manual_seed(seed)
    found = drawn_mask(torch.ones(elements, dtype=dtype), rate)
    torch.manual_seed(seed)
    threshold = min(max(round(rate * STEPS), 1), STEPS - 1)
    drawn = np.random.SFC64(int(torch.randint(1 << 62, ()))).random_raw(elements // 4 + 1).view(np.int16)[:elements]
    kept = torch.from_numpy(drawn.astype(np.int64) + STEPS // 2 >= threshold)
    assert torch.equal(found, kept.to(dtype) * torch.tensor(STEPS / (STEPS - threshold), dtype=dtype))
