import numpy as np
import pytest
import torch
from torch import nn

from bakeoff.optimization.optimizers import AdamWConfig, LambConfig
from bakeoff.optimization.optimizers.moments import UncorrectedAdamW


def in_numpy(weight, gradients, lr, decay, betas, epsilon, *, adapted, corrected):
    """Algorithm 2 of You et al. 2020 in float64, one tensor; without adaptation AdamW."""
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient**2
        seen = [1 - beta**step if corrected else 1.0 for beta in betas]
        update = (first / seen[0]) / (np.sqrt(second / seen[1]) + epsilon) + decay * weight
        ratio = np.linalg.norm(weight) / np.linalg.norm(update) if adapted else 1.0
        weight = weight - lr * ratio * update
    return weight


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("size", [1.0, 1000.0])  # of weights, above which no ratio is cut
@pytest.mark.parametrize("config", [LambConfig, AdamWConfig])
def test_the_updates_follow_their_equations(config, size, corrected):
    generator = np.random.default_rng(0)
    weight, bias = size * generator.normal(size=(4, 3)), generator.normal(size=4)
    gradients = [(generator.normal(size=(4, 3)), generator.normal(size=4)) for _ in range(5)]
    module = nn.Linear(3, 4).double()
    module.weight.data, module.bias.data = torch.tensor(weight), torch.tensor(bias)
    settings = {"lr": 0.05, "betas": (0.8, 0.95), "epsilon": 1e-2}
    optimizer = config(**settings, weight_decay=0.1, bias_correction=corrected).build(module)
    for weight_gradient, bias_gradient in gradients:
        module.weight.grad, module.bias.grad = torch.tensor(weight_gradient), torch.tensor(bias_gradient)
        optimizer.step()
    adapted = config is LambConfig
    expected = in_numpy(weight, [g for g, _ in gradients], decay=0.1, **settings, adapted=adapted, corrected=corrected)
    np.testing.assert_allclose(module.weight.detach().numpy(), expected, rtol=1e-9)
    # Vectors have neither decay nor adaptation.
    expected = in_numpy(bias, [g for _, g in gradients], decay=0.0, **settings, adapted=False, corrected=corrected)
    np.testing.assert_allclose(module.bias.detach().numpy(), expected, rtol=1e-9)


def test_a_bias_that_begins_at_zero_moves_by_the_learning_rate():
    module = nn.Linear(3, 4)
    nn.init.zeros_(module.bias)
    optimizer = LambConfig(lr=0.01).build(module)
    for _ in range(20):
        module.weight.grad, module.bias.grad = torch.ones(4, 3), torch.ones(4)
        optimizer.step()
    torch.testing.assert_close(module.bias.detach(), torch.full((4,), -0.2), rtol=1e-4, atol=0)


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


def test_the_fused_pass_of_a_gpu_moves_as_the_equations_and_keeps_the_same_state():
    """Its kernel exists for CPUs, too, where it is not used: bits stay those of earlier runs."""
    settings = {"lr": 0.05, "betas": (0.8, 0.95), "epsilon": 1e-2, "weight_decay": 0.1, "bias_correction": False}
    modules = [nn.Linear(3, 4).double() for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    plain, fused = optimizers = [AdamWConfig(**settings).build(module) for module in modules]
    fused.move = fused.move_fused
    for step in range(5):
        for module, optimizer in zip(modules, optimizers, strict=True):
            generator = torch.Generator().manual_seed(step)
            for parameter in module.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            optimizer.step()
    torch.testing.assert_close(modules[1].state_dict(), modules[0].state_dict(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(fused.state_dict(), plain.state_dict(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("device", "fused"), [("cpu", False), ("meta", True)])
def test_the_fused_pass_is_for_gpus_alone(monkeypatch, device, fused):
    passes = []
    monkeypatch.setattr(UncorrectedAdamW, "move_fused", lambda *_: passes.append(device))
    module = nn.Linear(3, 4).to(device)
    module.weight.grad = torch.ones_like(module.weight)
    AdamWConfig(lr=1.0, bias_correction=False).build(module).step()
    assert bool(passes) == fused
