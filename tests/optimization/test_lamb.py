import numpy as np
import torch
from torch import nn

from bakeoff.optimization.optimizers import AdamWConfig, LambConfig


def lamb_in_numpy(weight, gradients, lr, decay, beta1, beta2, epsilon):
    """Algorithm 2 of You et al. 2020, in float64, one tensor."""
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
        ratio = (first / (1 - beta1**step)) / (np.sqrt(second / (1 - beta2**step)) + epsilon)
        update = ratio + decay * weight
        weight = weight - lr * np.linalg.norm(weight) / np.linalg.norm(update) * update
    return weight


def test_lamb_follows_its_equations():
    generator = np.random.default_rng(0)
    weight, bias = generator.normal(size=(4, 3)), generator.normal(size=4)
    gradients = [(generator.normal(size=(4, 3)), generator.normal(size=4)) for _ in range(5)]
    module = nn.Linear(3, 4).double()
    module.weight.data, module.bias.data = torch.tensor(weight), torch.tensor(bias)
    optimizer = LambConfig(lr=0.05, weight_decay=0.1, betas=(0.8, 0.95), epsilon=1e-6).build(module)
    for weight_gradient, bias_gradient in gradients:
        module.weight.grad, module.bias.grad = torch.tensor(weight_gradient), torch.tensor(bias_gradient)
        optimizer.step()
    settings = (0.8, 0.95, 1e-6)
    expected = lamb_in_numpy(weight, [g for g, _ in gradients], 0.05, 0.1, *settings)
    np.testing.assert_allclose(module.weight.detach().numpy(), expected, rtol=1e-9)
    expected = lamb_in_numpy(bias, [g for _, g in gradients], 0.05, 0.0, *settings)  # no decay of vectors
    np.testing.assert_allclose(module.bias.detach().numpy(), expected, rtol=1e-9)


def test_lamb_moves_a_tensor_of_zeros():
    module = nn.Linear(3, 4)
    nn.init.zeros_(module.weight)
    optimizer = LambConfig(lr=0.1).build(module)
    module.weight.grad, module.bias.grad = torch.ones(4, 3), torch.zeros(4)
    optimizer.step()
    assert module.weight.isfinite().all()
    assert (module.weight < 0).all()


def test_norms_and_biases_have_no_weight_decay():
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Embedding(5, 4))
    decayed, free = AdamWConfig(lr=1e-3, weight_decay=0.1).groups(module)
    assert [tuple(p.shape) for p in decayed["params"]] == [(4, 3), (5, 4)]
    assert [tuple(p.shape) for p in free["params"]] == [(4,), (4,), (4,)]
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
