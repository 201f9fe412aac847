"""The loss of a large vocabulary in chunks is that of all scores at once."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
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


@pytest.mark.parametrize("chunk", [1, 3, 6, ROWS])
@pytest.mark.parametrize(("smoothing", "z_loss"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.3), (0.1, 1e-4)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("aligned", [False, True])
def test_loss_and_gradients_are_those_of_all_scores(monkeypatch, chunk, smoothing, z_loss, biased, aligned):
    """Also where the table is made wider for the products, as on a GPU."""
    if aligned:
        monkeypatch.setattr(ops, "ALIGNED_DEVICES", {"cpu"})
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


def test_in_bfloat16_products_are_bfloat16_and_sums_are_not(way, monkeypatch):
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


class Products(TorchDispatchMode):
    """The widths of the operands of all products."""

    def __init__(self):
        super().__init__()
        self.widths = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            self.widths |= {size for each in args for size in each.shape}
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("biased", [True, False])
def test_on_a_gpu_all_products_are_of_widths_that_it_reads_quickly(monkeypatch, chunks, biased):
    """Of the 50,257 tokens of GPT-2, too, whose number is odd."""
    vocabulary, width, rows = 50_257, 768, 2048
    monkeypatch.setattr(ops, "MOST_SCORES", vocabulary * (rows // chunks + 1))
    leaves = [torch.empty(shape, device="meta", requires_grad=True) for shape in ((rows, width), (vocabulary, width))]
    leaves += [torch.empty(vocabulary, device="meta", requires_grad=True)] if biased else []
    labels = torch.empty(rows, dtype=torch.long, device="meta")
    with Products() as products:
        loss = ops.linear_cross_entropy(leaves[0], leaves[1], leaves[2] if biased else None, labels)
        gradients = torch.autograd.grad(loss, leaves)
    assert [each.shape for each in gradients] == [each.shape for each in leaves]
    assert width in products.widths
    assert 50_304 in products.widths
    assert vocabulary not in products.widths


@given(
    rows=st.integers(0, 9),
    vocabulary=st.integers(2, 40),
    scale=st.sampled_from([0.0, 1.0, 8.0]),
    biased=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_in_bfloat16_loss_and_gradients_are_those_of_exact_probabilities(way, rows, vocabulary, scale, biased, seed):
    torch.manual_seed(seed)
    x = (torch.randn(rows, WIDTH) * scale).bfloat16().requires_grad_()
    weight = torch.randn(vocabulary, WIDTH).requires_grad_()
    leaves = [x, weight, *([torch.randn(vocabulary).requires_grad_()] if biased else [])]
    labels = torch.randint(0, vocabulary, (rows,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = 0.3 * ops.linear_cross_entropy(x, weight, leaves[2] if biased else None, labels)
        scores = F.linear(x, weight, leaves[2] if biased else None)
    exact = scores.detach().double().requires_grad_()
    expected = 0.3 * F.cross_entropy(exact, labels, reduction="sum")
    torch.testing.assert_close(found.double(), expected, rtol=1e-2, atol=1e-2)
    (above,) = torch.autograd.grad(expected, exact)
    wanted = [above @ weight.double(), above.T @ x.double(), above.sum(0)]
    for one, other in zip(torch.autograd.grad(found, leaves), wanted, strict=False):
        largest = float(other.detach().abs().sum(0).max()) if len(other) else 0.0
        torch.testing.assert_close(one.double(), other, rtol=3e-2, atol=1e-2 + 3e-2 * largest)


def test_in_bfloat16_confident_predictions_keep_their_small_gradients(way):
    """p = 1 - 1e-4 rounds to 1 in bfloat16; the loss and its gradient at the label do not round to 0."""
    scores = torch.tensor([[10.0, 10.0 - math.log(1e4)]])
    rows = torch.eye(2)[:1].bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = ops.linear_cross_entropy(rows, scores.T.contiguous() @ torch.eye(2)[:1], None, torch.tensor([0]))
    assert float(loss.detach()) == pytest.approx(1e-4, rel=0.1)
    (gradient,) = torch.autograd.grad(loss, rows)
    assert float(gradient[0, 0]) == pytest.approx(-1e-4 * math.log(1e4), rel=0.1)


def test_in_bfloat16_a_probability_too_small_for_the_type_has_a_finite_loss(way):
    rows = torch.ones(1, 1).bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = ops.linear_cross_entropy(rows, torch.tensor([[200.0], [0.0], [-200.0]]), None, torch.tensor([2]))
    assert float(loss.detach()) == pytest.approx(400.0)
    assert torch.autograd.grad(loss, rows)[0].tolist() == [[400.0]]


def test_in_bfloat16_a_label_that_is_no_column_is_refused(way):
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(IndexError):
        ops.linear_cross_entropy(torch.ones(2, 3).bfloat16(), torch.ones(4, 3), None, torch.tensor([0, 4]))


def test_in_bfloat16_what_is_no_number_makes_a_loss_that_is_none(way):
    rows = torch.ones(2, 3).bfloat16()
    rows[1, 0] = float("nan")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.linear_cross_entropy(rows, torch.randn(20, 3), None, torch.tensor([0, 3])).isnan()
