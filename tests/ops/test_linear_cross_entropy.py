"""The loss of a large vocabulary in chunks is that of all scores at once."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.ops import linear_cross_entropy as ops
from bakeoff.ops.cross_entropy import cross_entropy

ROWS, WIDTH, VOCABULARY = 7, 5, 30


def drawn(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((ROWS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY,))
    rows, weight, bias = (torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes)
    return rows, weight, bias, torch.randint(0, VOCABULARY, (ROWS,), generator=generator)


@pytest.mark.parametrize("chunk", [1, 3, 6])
@pytest.mark.parametrize(("smoothing", "z_loss"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.3), (0.1, 1e-4)])
@pytest.mark.parametrize("biased", [True, False])
def test_loss_and_gradients_are_those_of_all_scores(monkeypatch, chunk, smoothing, z_loss, biased):
    monkeypatch.setattr(ops, "MOST_SCORES", chunk * VOCABULARY + 1)
    rows, weight, bias, labels = drawn()
    bias = bias if biased else None
    leaves = [each for each in (rows, weight, bias) if each is not None]
    found = 0.3 * ops.linear_cross_entropy(rows, weight, bias, labels, smoothing, z_loss)
    expected = 0.3 * cross_entropy(F.linear(rows, weight, bias).float(), labels, smoothing, z_loss)
    torch.testing.assert_close(found, expected)
    for one, other in zip(torch.autograd.grad(found, leaves), torch.autograd.grad(expected, leaves), strict=True):
        torch.testing.assert_close(one, other)
    with torch.no_grad():
        torch.testing.assert_close(0.3 * ops.linear_cross_entropy(rows, weight, bias, labels, smoothing, z_loss), found)


def test_a_single_chunk_has_the_same_bits():
    results = []
    for loss_of in (ops.linear_cross_entropy, lambda x, w, b, y: cross_entropy(F.linear(x, w, b), y)):
        rows, weight, bias, labels = drawn(torch.float32)
        loss = loss_of(rows, weight, bias, labels)
        results.append((loss, *torch.autograd.grad(loss, (rows, weight, bias))))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_a_table_that_is_not_trained_gets_no_gradient(monkeypatch):
    monkeypatch.setattr(ops, "MOST_SCORES", 2 * VOCABULARY)
    rows, weight, bias, labels = drawn()
    ops.linear_cross_entropy(rows, weight.detach(), bias, labels).backward()
    assert weight.grad is None
    assert rows.grad.abs().sum() > 0
    assert bias.grad.abs().sum() > 0


def test_in_bfloat16_products_are_bfloat16_and_sums_are_not(monkeypatch):
    """As under autocast, where scores and gradients go through bfloat16 and the loss does not."""
    rows, weight, bias, labels = drawn(torch.float32)
    results = []
    for chunk in (ROWS, 2):
        monkeypatch.setattr(ops, "MOST_SCORES", chunk * VOCABULARY)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = ops.linear_cross_entropy(rows, weight, bias, labels)
        assert loss.dtype == torch.float32
        results.append((loss, *torch.autograd.grad(loss, (rows, weight, bias))))
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)


class Largest(TorchDispatchMode):
    """The most numbers of a tensor that an operation makes."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = [each.numel() for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
        self.numbers = max(self.numbers, *made, 0)
        return result


def test_no_more_scores_exist_at_once_than_are_allowed(monkeypatch):
    monkeypatch.setattr(ops, "MOST_SCORES", 2 * VOCABULARY)
    rows, weight, bias, labels = drawn()
    whole = ROWS * VOCABULARY
    with Largest() as largest:
        ops.linear_cross_entropy(rows, weight, bias, labels).backward()
    assert largest.numbers == WIDTH * VOCABULARY < whole
