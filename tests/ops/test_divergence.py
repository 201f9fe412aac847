"""The divergence from taught probabilities is that of a naive sum in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.ops.divergence import divergence


def naive(scores, taught, temperature, weights):
    """T^2 sum_n w_n sum_v p (log p - log q), and its gradient, in float64 and row by row."""
    total, gradient = 0.0, np.zeros_like(scores)
    for row, (z, p) in enumerate(zip(scores / temperature, taught, strict=True)):
        q = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        kept = p > 0
        total += temperature**2 * weights[row] * (p[kept] * (np.log(p[kept]) - np.log(q[kept]))).sum()
        gradient[row] = temperature * weights[row] * (q - p)
    return total, gradient


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**31),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.booleans(),
    st.booleans(),
)
def test_loss_and_gradient_are_naive_ones(seed, rows, columns, temperature, weighed, certain):
    drawn = np.random.default_rng(seed)
    scores, given_scores = drawn.normal(size=(rows, columns)) * 3, drawn.normal(size=(rows, columns)) * 3
    taught = np.exp(given_scores) / np.exp(given_scores).sum(-1, keepdims=True)
    if certain:  # probabilities of 0
        taught = np.eye(columns)[drawn.integers(0, columns, rows)]
    weights = drawn.uniform(0.1, 2, rows) if weighed else np.ones(rows)
    leaf = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
    loss = divergence(
        leaf,
        torch.tensor(taught, dtype=torch.float32),
        temperature,
        torch.tensor(weights, dtype=torch.float32) if weighed else None,
    )
    (0.7 * loss).backward()
    total, gradient = naive(scores, taught, temperature, weights)
    assert loss.item() == pytest.approx(total, rel=1e-5, abs=1e-5)
    torch.testing.assert_close(leaf.grad, torch.tensor(0.7 * gradient, dtype=torch.float32), atol=2e-6, rtol=1e-5)


def test_equal_probabilities_have_no_divergence_and_no_gradient():
    scores = torch.randn(4, 7, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = divergence(scores, (scores.detach() / 2).softmax(-1), 2.0)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-6)
    assert scores.grad.abs().max() < 1e-6


def test_no_rows_have_no_loss():
    scores = torch.zeros(0, 7, requires_grad=True)
    divergence(scores, torch.zeros(0, 7)).backward()
    assert scores.grad.shape == (0, 7)
