"""Muon's passes in C against the single operations that they replace, and whole steps with and without them."""

import pytest
import torch
from torch import Tensor, nn

from bakeoff.ops.cpu import muon
from bakeoff.ops.cpu.compiled_kernels import kernels
from bakeoff.optimization.optimizers.muon import Muon, MuonConfig
from bakeoff.resources.threads import using_threads

pytestmark = pytest.mark.skipif(kernels().library is None, reason=kernels().origin)

SHAPES = [(5, 3), (16, 40), (7, 33), (3, 4, 5), (1, 1)]


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("shape", SHAPES)
def test_directions_are_those_of_the_running_means(shape):
    gradients, means = list(drawn(2, *shape)), list(drawn(3, *shape)[1:].clone())
    expected = [mean.double().lerp(gradient.double(), 0.05) for mean, gradient in zip(means, gradients, strict=True)]
    found, lengths = muon.directions([gradients[0], gradients[1].mT.contiguous().mT], means, 0.95)
    for mean, direction, length, gradient, twin in zip(means, found, lengths, gradients, expected, strict=True):
        torch.testing.assert_close(mean.double(), twin, rtol=1e-6, atol=1e-6)
        step = gradient.double().lerp(twin, 0.95).flatten(1)
        torch.testing.assert_close(direction.double(), step, rtol=2**-8, atol=1e-6)
        torch.testing.assert_close(length.double()[0, 0], step.norm(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_move_by_the_update_times_the_factor(shape):
    parameters, updates = list(drawn(2, *shape).clone()), drawn(2, *shape).flatten(2).bfloat16()
    expected = [
        each.double() - 0.3 * update.double().view(shape) for each, update in zip(parameters, updates, strict=True)
    ]
    muon.move(parameters, updates, -0.3)
    for each, twin in zip(parameters, expected, strict=True):
        torch.testing.assert_close(each.double(), twin, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_are_those_without_the_kernels(threads, monkeypatch):
    moved = []
    for by_kernels in (False, True):
        layers = nn.Sequential(nn.Linear(300, 200), nn.Linear(200, 300), nn.Conv1d(8, 6, 5))
        group = {"params": [layer.weight for layer in layers], "weight_decay": 0.1, "matrices": True}
        optimizer = Muon([group], MuonConfig(lr=0.1), torch.bfloat16)
        if not by_kernels:
            monkeypatch.setattr(optimizer, "_runs_kernels", lambda tensors: False)
        for step in range(3):
            for layer in layers:
                layer.weight.data = drawn(*layer.weight.shape) if step == 0 else layer.weight.data
                layer.weight.grad = drawn(step + 1, *layer.weight.shape)[step]
            with using_threads(threads):
                optimizer.step()
        moved.append([layer.weight.detach() for layer in layers])
    for with_kernels, without, layer in zip(moved[1], moved[0], layers, strict=True):
        change = without - drawn(*layer.weight.shape)
        assert (with_kernels - without).norm() < 0.01 * change.norm()


class Divided(Tensor):
    """As the tensors of divided weights, whose numbers are not at their address."""


def test_tensors_that_are_not_whole_move_without_the_kernels():
    moved = []
    for of_class in (Tensor, Divided):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.randn(48, 64).as_subclass(of_class))
        weight.grad = torch.randn(48, 64).as_subclass(of_class)
        groups = [{"params": [weight], "weight_decay": 0.0, "matrices": True}]
        optimizer = Muon(groups, MuonConfig(lr=0.1), torch.bfloat16)
        assert optimizer._runs_kernels([weight]) == (of_class is Tensor)
        optimizer.step()
        moved.append(weight.detach().as_subclass(Tensor))
    assert (moved[0] - moved[1]).norm() < 0.01 * 0.1 * moved[0].norm()
