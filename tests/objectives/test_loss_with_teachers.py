"""The loss with teachers is the naive one in float64, whatever the head and however many rows' scores exist at once."""

import numpy as np
import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.objectives.distillation import DistillationConfig, Distilled, Known, taught_probabilities
from bakeoff.objectives.heads import AdaptiveTokenHead, HeadTransform, TokenHead, UntiedTokenHead
from bakeoff.ops import linear_cross_entropy as ops

ROWS, WIDTH, VOCABULARY = 11, 16, 30
HEADS = {
    "tied": lambda: TokenHead(WIDTH, WIDTH, VOCABULARY),
    "bert": lambda: TokenHead(WIDTH, WIDTH, VOCABULARY, HeadTransform("gelu", 1e-5)),
    "smoothed": lambda: TokenHead(WIDTH, WIDTH, VOCABULARY, bias=True, label_smoothing=0.1),
    "untied": lambda: UntiedTokenHead(WIDTH, VOCABULARY, True),
    "adaptive": lambda: AdaptiveTokenHead(WIDTH, VOCABULARY, [8, 20], True),
}


def drawn(kind, seed):
    """A head with its rows, labels and table."""
    torch.manual_seed(seed)
    head = HEADS[kind]()
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape)
    return head, torch.randn(ROWS, WIDTH), torch.randint(0, VOCABULARY, (ROWS,)), torch.randn(VOCABULARY, WIDTH)


def teachers(*kinds):
    return [Known(head, rows, table) for head, rows, _, table in (drawn(kind, 7 + i) for i, kind in enumerate(kinds))]


def probabilities(scores, temperature):
    scaled = scores.detach().double().numpy() / temperature
    exponentials = np.exp(scaled - scaled.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def config(weight=0.4, temperature=1.0):
    return DistillationConfig(teachers=["a"], weight=weight, temperature=temperature)


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("at_once", [1 << 27, 2 * 4 * VOCABULARY])
@pytest.mark.parametrize(("weight", "temperature"), [(0.4, 1.0), (0.4, 2.5), (1.0, 1.0)])
@pytest.mark.parametrize("weighed", [False, True])
def test_it_is_the_naive_sum(kind, at_once, weight, temperature, weighed, monkeypatch):
    monkeypatch.setattr(ops, "MOST_SCORES", at_once)
    head, rows, labels, table = drawn(kind, 0)
    head.z_loss = 0.0 if kind == "adaptive" else 0.01
    weights = torch.rand(ROWS) + 0.5 if weighed else None
    known = teachers("tied", "untied", "adaptive")
    leaves = [rows.requires_grad_(), table.requires_grad_(), *head.parameters()]
    loss = Distilled(config(weight, temperature), known)(head, rows, labels, table, weights)
    found = torch.autograd.grad(loss, leaves, allow_unused=True)

    taught = np.mean(
        [probabilities(each.head.scores(each.rows, each.embedding_weight), temperature) for each in known], 0
    )
    scores = head.scores(rows, table)
    of_student = probabilities(scores, temperature)
    divergences = temperature**2 * (taught * (np.log(taught) - np.log(of_student))).sum(-1)
    logarithms = np.log(probabilities(scores, 1.0))
    right = logarithms[np.arange(ROWS), labels]
    smoothing = 0.0 if weighed else getattr(head, "label_smoothing", 0.0)  # as without teachers
    entropies = -(1 - smoothing) * right - smoothing * logarithms.mean(-1)
    normalisers = scores.detach().double().logsumexp(-1).numpy()
    of_labels = entropies + head.z_loss * normalisers**2
    every = weight * divergences + (1 - weight) * of_labels
    assert loss.item() == pytest.approx((every * (1 if weights is None else weights.numpy())).sum(), rel=2e-5)

    # The same by autograd in float64, for the gradients.
    exact = {leaf: leaf.detach().double().requires_grad_() for leaf in leaves}
    for parameter in head.parameters():
        parameter.data = parameter.data.double()
    scores = head.scores(exact[rows], exact[table]) if kind != "adaptive" else head.softmax.log_prob(exact[rows])
    soft = -(torch.tensor(taught) * (scores / temperature).log_softmax(-1)).sum(-1) * temperature**2
    hard = -scores.log_softmax(-1)
    hard = (1 - smoothing) * hard[torch.arange(ROWS), labels] + smoothing * hard.mean(-1)
    total = weight * soft + (1 - weight) * (hard + head.z_loss * scores.logsumexp(-1).square())
    total = (total if weights is None else total * weights).sum()
    expected = torch.autograd.grad(total, [exact[rows], exact[table], *head.parameters()], allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        if one is not None or other is not None:
            torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=2e-5)


def test_probabilities_of_several_teachers_are_their_mean():
    one, other = teachers("tied"), teachers("untied")
    both = taught_probabilities([*one, *other], 2.0, slice(0, ROWS))
    alone = [taught_probabilities(each, 2.0, slice(0, ROWS)) for each in (one, other)]
    torch.testing.assert_close(both, (alone[0] + alone[1]) / 2)
    assert both.sum(-1).tolist() == pytest.approx([1] * ROWS)


@pytest.mark.parametrize("kind", HEADS)
def test_a_student_that_is_its_teacher_has_nothing_to_learn(kind):
    head, rows, labels, table = drawn(kind, 0)
    leaves = [rows.requires_grad_(), *head.parameters()]
    known = [Known(head, rows.detach(), table)]
    loss = Distilled(config(1.0, 2.0), known)(head, rows, labels, table)
    assert loss.item() == pytest.approx(0, abs=1e-4)
    for gradient in torch.autograd.grad(loss, leaves, allow_unused=True):
        assert gradient is None or gradient.abs().max() < 1e-4


def test_teachers_get_no_gradient():
    head, rows, labels, table = drawn("tied", 0)
    (teacher,) = teachers("untied")
    teacher.rows.requires_grad_()
    Distilled(config(), [teacher])(head, rows.requires_grad_(), labels, table).backward()
    assert rows.grad.abs().sum() > 0
    assert teacher.rows.grad is None
    assert all(parameter.grad is None for parameter in teacher.head.parameters())


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"teachers": []}, "teachers"),
        ({"teachers": ["a", "a"]}, "twice"),
        ({"teachers": ["a"], "weight": 0}, "weight"),
        ({"teachers": ["a"], "temperature": 0}, "temperature"),
        ({"teachers": ["a"], "alpha": 1}, "alpha"),
    ],
)
def test_settings_that_mean_nothing_are_refused(values, word):
    with pytest.raises(UserError, match=word):
        DistillationConfig.parse(values, "here")
