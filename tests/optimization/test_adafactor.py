"""Adafactor against the paper's algorithms 4 (matrices) and 5 (vectors), step by step in float64 with loops."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from bakeoff.optimization.optimizers import AdafactorConfig

RATES = [0.3, 0.3, 0.2, 0.1]


def rms(x):
    return math.sqrt(sum(float(number) ** 2 for number in x.flatten()) / x.size)


def stepped(x, update, lr, threshold, least_size):
    clipped = update / max(1.0, rms(update) / threshold)
    return x - max(least_size, rms(x)) * lr * clipped


def matrix(x, gradients, decay, threshold, epsilons):
    """Algorithm 4, in sums as the paper has it."""
    n, m = x.shape
    rows, columns = [0.0] * n, [0.0] * m
    for t, (lr, g) in enumerate(zip(RATES, gradients, strict=True), start=1):
        beta = 1 - t**-decay
        for i in range(n):
            rows[i] = beta * rows[i] + (1 - beta) * sum(g[i, j] ** 2 + epsilons[0] for j in range(m))
        for j in range(m):
            columns[j] = beta * columns[j] + (1 - beta) * sum(g[i, j] ** 2 + epsilons[0] for i in range(n))
        update = np.empty_like(x)
        for i in range(n):
            for j in range(m):
                update[i, j] = g[i, j] / math.sqrt(rows[i] * columns[j] / sum(rows))
        x = stepped(x, update, lr, threshold, epsilons[1])
    return x


def vector(x, gradients, decay, threshold, epsilons):
    """Algorithm 5."""
    second = [0.0] * len(x)
    for t, (lr, g) in enumerate(zip(RATES, gradients, strict=True), start=1):
        beta = 1 - t**-decay
        update = np.empty_like(x)
        for i in range(len(x)):
            second[i] = beta * second[i] + (1 - beta) * (g[i] ** 2 + epsilons[0])
            update[i] = g[i] / math.sqrt(second[i])
        x = stepped(x, update, lr, threshold, epsilons[1])
    return x


class Tensors(nn.Module):
    def __init__(self, *values):
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(torch.tensor(value)) for value in values])


def trained(config, values, gradients):
    """Steps with gradients[t][n] for the n-th tensor."""
    module = Tensors(*values)
    optimizer = config.build(module)
    for lr, own in zip(RATES, gradients, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = lr
        for parameter, gradient in zip(module.values, own, strict=True):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return [parameter.detach().numpy() for parameter in module.values]


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e-12], ids=["usual", "small", "tiny"])
@pytest.mark.parametrize("settings", [(0.8, 1.0, (1e-30, 1e-3)), (0.5, 0.4, (1e-6, 2.0))], ids=["paper", "other"])
def test_it_follows_its_algorithms(scale, settings):
    generator = np.random.default_rng(0)
    shapes = ((4, 3), (2, 5), (4,))
    values = [generator.normal(size=shape) for shape in shapes]
    gradients = [[generator.normal(size=shape) * scale * (t + 1) for shape in shapes] for t in range(len(RATES))]
    decay, threshold, epsilons = settings
    config = AdafactorConfig(lr=0.3, decay=decay, threshold=threshold, epsilons=epsilons)
    found = trained(config, values, gradients)
    for n, rule in enumerate((matrix, matrix, vector)):
        expected = rule(values[n], [own[n] for own in gradients], *settings)
        np.testing.assert_allclose(found[n], expected, rtol=1e-10)


def test_of_three_dimensions_the_two_largest_are_factored():
    generator = np.random.default_rng(1)
    value, gradients = generator.normal(size=(4, 2, 3)), [generator.normal(size=(4, 2, 3)) for _ in RATES]
    config = AdafactorConfig(lr=0.3)
    found = trained(config, [value], [[g] for g in gradients])[0]
    optimizer = config.build(module := Tensors(value))
    module.values[0].grad = torch.tensor(gradients[0])
    optimizer.step()
    shapes = {name: tuple(state.shape) for name, state in optimizer.state[module.values[0]].items()}
    assert shapes == {"step": (), "rows": (1, 2, 3), "columns": (4, 2, 1)}
    # Every slice has moments of its own; only clipping and size are the whole tensor's.
    alike = np.repeat(value[:, :1], 2, axis=1), [np.repeat(g[:, :1], 2, axis=1) for g in gradients]
    found = trained(config, [alike[0]], [[g] for g in alike[1]])[0]
    expected = matrix(value[:, 0], [g[:, 0] for g in gradients], 0.8, 1.0, (1e-30, 1e-3))
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 2, axis=1), rtol=1e-10)


def test_rows_that_never_had_a_gradient_stay_and_give_no_nan():
    table = nn.Embedding(5, 4)
    before = table.weight.detach().clone()
    optimizer = AdafactorConfig(lr=0.1).build(table)
    for _ in range(3):
        table(torch.tensor([1, 2])).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert table.weight.isfinite().all()
    assert torch.equal(table.weight[[0, 3, 4]], before[[0, 3, 4]])
    assert (table.weight[[1, 2]] != before[[1, 2]]).all()
    table.weight.grad = torch.zeros(5, 4)
    optimizer.step()
    assert table.weight.isfinite().all()
