import pytest
import torch
import torch.nn.functional as F

from bakeoff.ops.cross_entropy import cross_entropy


@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_loss_and_gradient_equal_torchs(rows, scale):
    torch.manual_seed(0)
    scores = (torch.randn(rows, 30, dtype=torch.float64) * scale).requires_grad_()
    labels = torch.randint(0, 30, (rows,))
    ours = cross_entropy(scores, labels) * 0.3
    theirs = F.cross_entropy(scores, labels, reduction="sum") * 0.3
    torch.testing.assert_close(ours, theirs)
    (found,) = torch.autograd.grad(ours, scores)
    (expected,) = torch.autograd.grad(theirs, scores)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("z_loss", [1e-4, 0.3])
def test_the_squared_normaliser_is_added_with_its_weight(z_loss, smoothing):
    torch.manual_seed(0)
    scores = (torch.randn(6, 30, dtype=torch.float64) * 3 + 2).requires_grad_()
    labels = torch.randint(0, 30, (6,))
    ours = cross_entropy(scores, labels, smoothing, z_loss) * 0.3
    plain = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
    theirs = (plain + z_loss * scores.exp().sum(-1).log().pow(2).sum()) * 0.3
    torch.testing.assert_close(ours, theirs)
    (found,) = torch.autograd.grad(ours, scores)
    (expected,) = torch.autograd.grad(theirs, scores)
    torch.testing.assert_close(found, expected)


def test_a_probability_too_small_for_float32_has_a_finite_loss():
    scores = torch.tensor([[200.0, 0.0, -200.0]], requires_grad=True)
    loss = cross_entropy(scores, torch.tensor([2]))
    assert float(loss.detach()) == pytest.approx(400.0)
    loss.backward()
    assert scores.grad.tolist() == [[1.0, 0.0, -1.0]]


def test_it_is_recorded_that_the_gradient_can_be_taken_once():
    loss = cross_entropy(torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 1]))
    loss.backward(retain_graph=True)
    with pytest.raises(AssertionError, match="taken already"):
        loss.backward()
