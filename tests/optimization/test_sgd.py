"""Gradient descent against the published update, number by number in Python's own float64."""

import numpy as np
import torch
from torch import nn

from bakeoff.optimization.optimizers import NagConfig, SgdConfig

RATES = [0.1, 0.2, 0.2, 0.05, 0.0125, 0.3]  # the learning rate changes between steps


def sgd(x, gradients, momentum, decay):
    """Polyak's momentum with L2 decay."""
    b = 0.0
    for lr, gradient in zip(RATES, gradients, strict=True):
        b = momentum * b + gradient + decay * x
        x = x - lr * b
    return x


def nesterov(x, gradients, momentum, decay, corrected=True):
    """Sutskever et al. 2013, equations 3 and 4, for the parameters as they are where the gradient is taken.

    y_t is where the gradient is taken, x_t = y_t - momentum v_t the parameters of the equations. The velocity holds the
    learning rate of its time; fairseq's code brings it to the present one, which the paper, whose rate is constant,
    does not speak of. The decay multiplies the parameters before the step.
    """
    v, y, last = 0.0, x, RATES[0]
    for lr, gradient in zip(RATES, gradients, strict=True):
        y = y * (1 - lr * decay)
        if corrected:
            v = v * lr / last
        x = y - momentum * v
        v = momentum * v - lr * gradient
        x = x + v
        y = x + momentum * v
        last = lr
    return y


def trained(config, weight, bias, gradients):
    module = nn.Linear(3, 4).double()
    module.weight.data, module.bias.data = torch.tensor(weight), torch.tensor(bias)
    optimizer = config.build(module)
    for lr, (weight_gradient, bias_gradient) in zip(RATES, gradients, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = lr
        module.weight.grad, module.bias.grad = torch.tensor(weight_gradient), torch.tensor(bias_gradient)
        optimizer.step()
    return module.weight.detach().numpy(), module.bias.detach().numpy()


def example():
    generator = np.random.default_rng(0)
    gradients = [(generator.normal(size=(4, 3)), generator.normal(size=4)) for _ in RATES]
    return generator.normal(size=(4, 3)), generator.normal(size=4), gradients


def expect(found, rule, momentum, decay):
    """What the rule makes of each number; biases have no decay."""
    weight, bias, gradients = example()
    for (row, column), number in np.ndenumerate(weight):
        expected = rule(number, [g[row, column] for g, _ in gradients], momentum, decay)
        np.testing.assert_allclose(found[0][row, column], expected, rtol=1e-10)
    for row, number in enumerate(bias):
        expected = rule(number, [g[row] for _, g in gradients], momentum, 0.0)
        np.testing.assert_allclose(found[1][row], expected, rtol=1e-10)


def test_sgd_follows_its_equation():
    expect(trained(SgdConfig(lr=0.1), *example()), sgd, 0.0, 0.0)
    expect(trained(SgdConfig(lr=0.1, momentum=0.9, weight_decay=0.1), *example()), sgd, 0.9, 0.1)


def test_nesterov_follows_its_equations_when_the_learning_rate_changes():
    expect(trained(NagConfig(lr=0.1, momentum=0.99), *example()), nesterov, 0.99, 0.0)
    expect(trained(NagConfig(lr=0.1, momentum=0.9, weight_decay=0.1), *example()), nesterov, 0.9, 0.1)


def test_a_velocity_that_keeps_its_old_learning_rate_is_another_update():
    weight, _, gradients = example()
    series = [g[0, 0] for g, _ in gradients]
    found = trained(NagConfig(lr=0.1, momentum=0.99), *example())[0][0, 0]
    assert abs(found - nesterov(weight[0, 0], series, 0.99, 0.0, corrected=False)) > 0.01
